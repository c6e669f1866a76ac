"""What a person types to replay a run."""

from typing import Final

from django import forms

from repair.replay.rules import Asked
from workflows.enums_replays import Effects, Versions

LONGEST_REASON: Final = 500


class ReplayForm(forms.Form):
    """Under which versions, with which effects, and why."""

    versions = forms.ChoiceField(
        label="Under which versions", choices=Versions.choices, initial=Versions.NOW,
        help_text="Of workflow, operations and policies. Those of then are there only while they are installed.",
    )  # fmt: skip
    effects = forms.ChoiceField(
        label="What becomes of effects", choices=Effects.choices, initial=Effects.DRY,
        help_text="What happened, or may have, is never done again, whatever you choose.",
    )  # fmt: skip
    fresh = forms.BooleanField(
        label="Ask again for data that people had supplied", required=False,
        help_text="Otherwise what they supplied is taken along.",
    )  # fmt: skip
    reason = forms.CharField(
        label="Why", max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It stays with the replay for good.",
        error_messages={"required": "Say why: whoever finds it later must be able to follow."},
    )  # fmt: skip

    def asked(self) -> Asked:
        """As far as it is filled in: what is missing is as the form begins."""
        given = getattr(self, "cleaned_data", {})
        return Asked(
            Versions(given.get("versions") or Versions.NOW), Effects(given.get("effects") or Effects.DRY),
            given.get("reason", ""), bool(given.get("fresh")),
        )  # fmt: skip
