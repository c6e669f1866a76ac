"""The tenant: whose rows they are."""

from django.db import models
from django.db.models.functions import Now

from common.ids import new_id


class Tenant(models.Model):
    """A customer of this installation. Nothing of one tenant is read, counted or guessed from another."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.slug
