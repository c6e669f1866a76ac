"""An unknown outcome and two people who may say what became of it; shared by the tests of attestation."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from access.enums import Role
from access.models import User
from audit.actors import Actor, Owner, Via
from audit.models import Event
from common.clock import db_clock
from tests.factories import make_user
from tests.workflows.conftest import Desk, person
from tests.workflows.later import age, as_superuser, end_of, fresh
from tests.workflows.test_worker_answers import UNKNOWN
from tests.workflows.test_worker_unknown import SETTLED
from tests.workflows.toy import NOTHING_CAME, ToyPay
from workflows.actions.attesting import Attested, attest
from workflows.models import Attestation, Command

ADMIN = Actor(performed_by="cli:admin", via=Via.COMMAND_LINE, owner=Owner.PERSON)


@dataclass
class Counter:
    """An unknown command, and two people who may say what became of it."""

    desk: Desk
    command: Command
    opal: User
    otto: User

    def say(
        self, says: str, user: User | None = None, reference: str | None = None, **changes: Any
    ) -> Attested:
        named = "re_9" if says != "did_not_happen" else ""
        values = {
            "tenant_id": self.desk.tenant.pk, "command_id": self.command.pk, "says": says, "clock": db_clock,
            "reference": named if reference is None else reference, "reason": "I saw it at the provider.",
            "by": person(user or self.opal),
        }  # fmt: skip
        return attest(**(values | changes))

    def wait_until_settled(self) -> None:
        age(self.command.run_id, SETTLED, "workflows_command")

    def stays_unknown(self) -> bool:
        return end_of(self.command) == UNKNOWN

    def sent_once_more(self) -> None:
        """Another request with the same key: whatever became of the first."""
        as_superuser(
            "UPDATE workflows_command SET tries = tries + 1, resent = true WHERE id = %s", self.command.pk
        )


def open_counter(desk: Desk) -> Counter:
    """A request went out for it, and nothing came back."""
    command = desk.approved()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    opal = make_user(desk.tenant, "opal", roles=[Role.OPERATOR])
    return Counter(desk, fresh(command), opal, make_user(desk.tenant, "otto", roles=[Role.OWNER]))


def takes_two(monkeypatch: pytest.MonkeyPatch, limit: str = "10.00") -> None:
    """From this amount on; the action is about 10.00."""
    monkeypatch.setattr(ToyPay, "second_person_from", Decimal(limit))


def events(command: Command, kind: str) -> list[Event]:
    return list(Event.objects.filter(run_id=command.run_id, kind=kind).order_by("at"))


def words(command: Command) -> list[tuple[str, str, bool]]:
    rows = Attestation.objects.filter(command=command).select_related("user")
    return [(row.user.username, row.says, row.replaced_at is None) for row in rows]
