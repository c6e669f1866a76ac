"""Words of replays."""

from django.db.models import TextChoices


class Versions(TextChoices):
    """Under which versions of workflow, operations and policies a run is replayed."""

    THEN = "then", "The versions of then"
    NOW = "now", "The versions of now"


class Effects(TextChoices):
    """What becomes of the steps of a replay that would act."""

    DRY = "dry", "Nothing is proposed: a dry run"
    PROPOSE = "propose", "Proposed and approved anew"
