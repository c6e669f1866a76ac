"""Two transactions that want the same thing, lined up so that the wrong order would show."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction

from access.actions import remove_from_group
from access.models import GroupMembership, Membership
from approvals.models import Proposal
from approvals.policies import standing_votes, valid_approvals
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from tests.factories import make_group
from tests.workflows.conftest import AGENT, Desk, state
from tests.workflows.later import as_superuser, end_of
from workflows.actions.cancelling import cancel_run
from workflows.actions.settle import lock_record
from workflows.authoring import Verdict
from workflows.results import Finish

pytestmark = pytest.mark.django_db
ADMIN = Actor(performed_by="cli:admin", via=Via.COMMAND_LINE, owner=Owner.PERSON)


class Beside(threading.Thread):
    """Something that goes on beside the test, on a connection of its own."""

    def __init__(self, do: Callable[[], Any]) -> None:
        super().__init__()
        self.do, self.result = do, None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.do()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.result = error
        finally:
            connections.close_all()

    def waits(self) -> bool:
        self.join(0.7)
        return self.is_alive()

    def end(self) -> Any:
        self.join(20)
        return self.result


def wait_for_queue(length: int) -> None:
    """Until so many wait for an advisory lock."""
    with connection.cursor() as cursor:
        for _ in range(200):
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            if cursor.fetchone()[0] >= length:
                return
            time.sleep(0.05)
    raise AssertionError("nobody waits")


def test_a_run_ends_while_the_next_of_its_record_is_cancelled(desk: Desk) -> None:
    """Invariant I3: waiting for each other would end one of the two, and a worker's answer with it."""
    desk.till.stages["read"] = Finish("nothing_to_do")
    first = desk.start(record="r-1", sequence=1)
    second = desk.start(record="r-1", sequence=2)
    with transaction.atomic():
        lock_record(desk.tenant.pk, "toy-pay", "test", "r-1")
        ending = Beside(desk.advance)
        wait_for_queue(1)
        cancelling = Beside(
            lambda: cancel_run(
                tenant_id=desk.tenant.pk, run_id=second.pk, reason="not needed", by=AGENT, clock=db_clock
            )
        )
        wait_for_queue(2)
    assert (ending.end(), cancelling.end()) == (1, "cancelled")
    assert (state(first.pk)[0], state(second.pk)[0]) == ("completed", "cancelled")


@pytest.fixture
def approved_in_group(desk: Desk) -> Proposal:
    """Approved by ada as a member of the group that is asked."""
    group = make_group(desk.tenant, "Desk")
    GroupMembership.objects.create(
        tenant=desk.tenant, membership=Membership.objects.get(user=desk.ada), group=group
    )
    desk.till.verdict = Verdict("ask_one", "toy.ask", "It is a toy.", group="Desk")
    proposal = desk.proposed()
    desk.decide(proposal)
    return Proposal.objects.get(pk=proposal.pk)


def test_a_send_that_waits_for_a_reviewers_row_beyond_execute_by_is_void(desk: Desk) -> None:
    """Invariant I13: *sent* is committed only before execute-by, on the clock that is read after the last lock."""
    command = desk.approved()
    as_superuser(
        "UPDATE approvals_proposal SET execute_by = clock_timestamp() + interval '1.5 seconds' WHERE id = %s",
        command.proposal_id,
    )
    with transaction.atomic():
        Membership.objects.select_for_update(no_key=True).get(user=desk.ada)
        working = Beside(desk.work)
        time.sleep(2)
        assert working.is_alive()
    assert working.end() == 1
    assert (end_of(command)["command"], desk.till.calls) == ("void(lapsed)", [])


def counted(proposal: Proposal) -> int:
    return valid_approvals(proposal, standing_votes(proposal), lock=True)


def test_nobody_leaves_the_group_between_the_count_and_the_commit_of_sent(
    desk: Desk, approved_in_group: Proposal
) -> None:
    """Invariant I16: after the revocation is committed, nothing is newly sent."""
    group = approved_in_group.group
    assert group is not None
    with transaction.atomic():
        assert counted(approved_in_group) == 1
        leaving = Beside(lambda: remove_from_group(group=group, user=desk.ada, by=ADMIN, clock=db_clock))
        assert leaving.waits()
    assert leaving.end() is None
    with transaction.atomic():
        assert counted(approved_in_group) == 0


def test_a_count_that_waits_for_somebody_to_leave_sees_them_gone(
    desk: Desk, approved_in_group: Proposal
) -> None:
    def count() -> int:
        with transaction.atomic():
            return counted(approved_in_group)

    with transaction.atomic():
        Membership.objects.select_for_update(no_key=True).get(user=desk.ada)
        GroupMembership.objects.filter(group=approved_in_group.group).delete()
        counting = Beside(count)
        assert counting.waits()
    assert counting.end() == 0
