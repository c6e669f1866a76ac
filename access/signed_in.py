"""Who a signed-in request comes from: session, person and membership, the three rows that every page begins with.

The same as Django's own store and backend and `Membership.objects` read, by statements that the server has prepared:
what comes before each decision delays each approved action.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from django.contrib.auth.backends import ModelBackend
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db import models, router, transaction
from django.utils import timezone

from access.models import Membership, User
from common.models import Tenant
from common.prepared import Reading, fetch

PROOFS: Final = "placet.proofs"
"""In a session: when the person last confirmed that it is them, by the digest of the action that it was for."""
_SESSION = Reading(Session, "WHERE r.session_key = %s AND r.expire_date > %s")
_PERSON = Reading(User, "WHERE r.id = %s")
# Every page says when break-glass is on; it comes along, so that no page pays a statement for it.
_MEMBERSHIP = """
    SELECT {columns}, (
        SELECT b.ends_at FROM access_breakglass b
        WHERE b.tenant_id = m.tenant_id AND b.ended_at IS NULL AND b.ends_at > statement_timestamp())
    FROM access_membership m JOIN common_tenant t ON t.id = m.tenant_id
    WHERE m.user_id = %s AND m.is_active ORDER BY m.id LIMIT 1
"""


class SessionStore(db.SessionStore):
    """Django's sessions in the database. Two requests of one session lose what the first one wrote;
    of the proofs (`access.sessions`) nothing is lost so: one that was used comes not back.
    """

    _loaded: Mapping[str, float] = MappingProxyType({})
    """The proofs as they were read."""

    def load(self) -> dict[str, Any]:
        data: dict[str, Any] = super().load()
        self._loaded = dict(data.get(PROOFS, {}))
        return data

    def save(self, must_create: bool = False) -> None:
        if must_create or not (self._loaded or self.get(PROOFS)):
            super().save(must_create)
            return
        with transaction.atomic(using=router.db_for_write(Session)):
            self[PROOFS] = self._merged(self.get(PROOFS, {}))
            super().save(must_create)
        self._loaded = dict(self[PROOFS])

    def _merged(self, here: Mapping[str, float]) -> dict[str, float]:
        """What is stored now, with what this request added, and without what it used up."""
        rows = Session.objects.select_for_update().filter(session_key=self.session_key)
        row = rows.first()
        if row is None:
            return dict(here)
        stored: dict[str, float] = self.decode(row.session_data).get(PROOFS, {})
        used = self._loaded.keys() - here.keys()
        new = {digest: at for digest, at in here.items() if self._loaded.get(digest) != at}
        return {digest: at for digest, at in stored.items() if digest not in used} | new

    def _get_session_from_db(self) -> Session | None:
        for session in _SESSION.rows(self.session_key, timezone.now()):
            return session
        self._session_key = None
        return None


class Backend(ModelBackend):
    """Django's accounts with passwords."""

    def get_user(self, user_id: Any) -> User | None:
        return next((user for user in _PERSON.rows(user_id) if self.user_can_authenticate(user)), None)


def oldest_membership(user: User) -> Membership | None:
    """The person's oldest active membership with its tenant, and until when break-glass is on there."""
    for row in fetch(_statement(), [user.pk]):
        values: list[Any] = list(row)
        until: datetime | None = values.pop()
        split = len(_fields(Membership))
        membership = Membership.from_db("default", _fields(Membership), values[:split])
        membership.user, membership.tenant = user, Tenant.from_db("default", _fields(Tenant), values[split:])
        membership.break_glass_until = until
        return membership
    return None


@cache
def _fields(model: type[models.Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


@cache
def _statement() -> str:
    columns = [f"m.{field.column}" for field in Membership._meta.concrete_fields]
    columns += [f"t.{field.column}" for field in Tenant._meta.concrete_fields]
    return _MEMBERSHIP.format(columns=", ".join(columns))
