"""When people are away, and who decides in their stead."""

from typing import Any, ClassVar

import pgtrigger
from django.db import models
from django.db.models import F, Q

from access.models.people import Group, User
from common.fsm import Frozen
from common.tenancy import SameTenant, TenantRow, tenant_key
from common.walls import Wall


class NoChains(Wall):
    """Whoever decides in somebody's stead has nobody in their own stead meanwhile: no circle, and no chain.

    Checked under a lock on the tenant's absences, by people and not by accounts, also against raw SQL.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update
    declare = [("mine", "uuid[]"), ("theirs", "uuid[]")]

    def get_func(self, model: Any) -> str:
        people = """ARRAY(
            SELECT o.user_id FROM access_membership m JOIN access_membership o ON o.tenant_id = m.tenant_id
                AND (o.user_id = m.user_id OR o.person_id = m.person_id)
            WHERE m.tenant_id = NEW.tenant_id AND m.user_id = {})"""
        return f"""
            IF NEW.deputy_id IS NULL OR NEW.ended_at IS NOT NULL THEN
                RETURN NEW;
            END IF;
            PERFORM pg_advisory_xact_lock(hashtextextended('absences of ' || NEW.tenant_id, 7));
            mine := {people.format("NEW.user_id")};
            theirs := {people.format("NEW.deputy_id")};
            IF NEW.deputy_id = ANY(mine) OR EXISTS (
                SELECT FROM access_absence a
                WHERE a.tenant_id = NEW.tenant_id AND a.id <> NEW.id AND a.ended_at IS NULL
                  AND a.deputy_id IS NOT NULL AND a.starts_at < NEW.ends_at AND a.ends_at > NEW.starts_at
                  AND (a.user_id = ANY(theirs) OR a.deputy_id = ANY(mine))
            ) THEN
                {self.refuse("absence: % would make a circle or a chain of deputies")}
            END IF;
            RETURN NEW;
        """


class Absence(TenantRow):
    """A stretch of time, from ``starts_at`` up to and without ``ends_at``, in which somebody is away.

    ``deputy`` decides in their stead: for ``group``, or for all their groups where none is named. A deputy gets the
    groups alone, never a role, and only while it lasts. Without a deputy nobody does.
    """

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="absences")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    zone = models.CharField(max_length=60)
    """The IANA zone in which its times were said, and are shown first."""
    deputy = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="deputising")
    group = models.ForeignKey(
        Group, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    ended_at = models.DateTimeField(null=True)
    """When it was taken back, which is not when it merely was over."""
    ended_by = models.CharField(max_length=200, blank=True)

    class Meta:
        triggers: ClassVar = [
            NoChains(name="access_absence_no_chains"),
            Frozen(
                name="access_absence_said",
                fields=[
                    "tenant", "user", "starts_at", "ends_at", "zone", "deputy", "group", "created_at", "created_by",
                ],
                once=["ended_at"],
            ),
        ]  # fmt: skip
        constraints = [
            tenant_key("access_absence_tenant_id"),
            SameTenant(field="group", name="access_absence_group_tenant"),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="access_absence_has_a_length"
            ),
            models.CheckConstraint(
                condition=Q(deputy__isnull=True) | ~Q(deputy=F("user")), name="access_absence_somebody_else"
            ),
            models.CheckConstraint(
                condition=Q(group__isnull=True) | Q(deputy__isnull=False),
                name="access_absence_group_of_a_deputy",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "user", "ends_at"], condition=Q(ended_at__isnull=True), name="access_absence_of"
            ),
            models.Index(
                fields=["tenant", "deputy", "ends_at"],
                condition=Q(ended_at__isnull=True, deputy__isnull=False), name="access_absence_deputies",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.user_id} away until {self.ends_at:%Y-%m-%d %H:%M}"
