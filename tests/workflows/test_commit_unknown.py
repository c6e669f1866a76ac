"""An exception out of COMMIT is neither a yes nor a no: the rows are read again, nothing is undone or made twice."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.postgresql.base import DatabaseWrapper

from audit.models import Event
from tests.workflows.conftest import Desk
from tests.workflows.later import age, as_superuser, end_of, fresh, look_up, recover
from tests.workflows.test_worker_answers import CONFIRMED
from tests.workflows.test_worker_unknown import HAPPENED
from workflows.models import Attempt, Command

pytestmark = pytest.mark.django_db


def lose_connection_at_commit(
    monkeypatch: pytest.MonkeyPatch, number: int, *, before: bool, only_if: Callable[[], bool]
) -> None:
    """The backend is ended around the n-th COMMIT that meets the condition: before it, or when it has succeeded."""
    seen = [0]
    commit = DatabaseWrapper._commit

    def around(self: Any) -> None:
        due = self.alias == "default" and only_if()
        seen[0] += due
        if not due or seen[0] != number:
            commit(self)
            return
        pid = self.connection.info.backend_pid
        if not before:
            commit(self)
        as_superuser("SELECT pg_terminate_backend(%s, 5000)", pid)
        if before:
            commit(self)
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(DatabaseWrapper, "_commit", around)


def wrote(kind: str) -> Callable[[], bool]:
    """Whether the transaction that commits now wrote an event of this kind."""

    def has() -> bool:
        mine = Event.objects.extra(where=["xid::text = pg_current_xact_id_if_assigned()::text"])
        return mine.filter(kind=kind).exists()

    return has


@pytest.mark.parametrize("before", [True, False], ids=["undone", "committed"])
def test_a_claim_whose_commit_is_not_known(desk: Desk, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    """Field report P2: the same worker recognises its token, and goes on at once."""
    command = desk.approved()
    lose_connection_at_commit(monkeypatch, 1, before=before, only_if=wrote("command.claimed"))
    desk.work()
    desk.work()
    assert fresh(command).status == "confirmed"
    assert len(desk.till.calls) == 1
    assert Attempt.objects.count() == 1


@pytest.mark.parametrize("before", [True, False], ids=["undone", "committed"])
def test_a_sent_whose_commit_is_not_known_calls_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    command = desk.approved()
    lose_connection_at_commit(monkeypatch, 1, before=before, only_if=wrote("command.sent"))
    desk.work()
    assert desk.till.calls == []
    assert fresh(command).status == ("claimed" if before else "sent")
    age(command.run_id, 60, "workflows_command")
    recover()
    assert fresh(command).status == ("ready" if before else "unknown")


@pytest.mark.parametrize("before", [True, False], ids=["undone", "committed"])
def test_a_stored_answer_whose_commit_is_not_known(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """At worst the answer is lost with the connection, and then it is asked for: never sent again."""
    command = desk.approved()
    lose_connection_at_commit(monkeypatch, 1, before=before, only_if=wrote("command.confirmed"))
    desk.work()
    if fresh(command).status == "sent":
        age(command.run_id, 60, "workflows_command")
        recover()
        desk.till.findings = [HAPPENED]
        assert look_up(command)
    assert end_of(command) == CONFIRMED
    assert len(desk.till.calls) == 1
    assert Event.objects.filter(subject_id=command.pk, kind="command.confirmed").count() == 1


def test_an_approval_whose_commit_is_not_known_is_there_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = desk.proposed()
    lose_connection_at_commit(monkeypatch, 1, before=False, only_if=wrote("proposal.approved"))
    with pytest.raises(OperationalError):
        desk.decide(proposal)
    connection.close()
    again = desk.decide(proposal)
    assert again.replayed
    assert Command.objects.filter(proposal=proposal).count() == 1
