"""When people of an organisation work."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from access.models.people import Group
from common.tenancy import SameTenant, TenantRow, tenant_key


class WorkingHours(TenantRow):
    """The week of a group, or of the whole organisation where no group is named. Without a row people work always."""

    group = models.ForeignKey(
        Group, null=True, on_delete=models.CASCADE, db_constraint=False, related_name="+"
    )
    zone = models.CharField(max_length=60)
    """The IANA zone of its clock and of its calendar."""
    week = models.JSONField()
    """Seven days from Monday on: null for a day off, or ``[from, until]`` in minutes of the local day."""
    holidays = ArrayField(models.DateField(), default=list)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            tenant_key("access_workinghours_tenant_id"),
            SameTenant(field="group", name="access_workinghours_group_tenant"),
            models.UniqueConstraint(
                fields=["tenant", "group"], nulls_distinct=False, name="access_workinghours_once"
            ),
        ]

    def __str__(self) -> str:
        return f"hours in {self.zone}"
