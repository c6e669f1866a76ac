"""Events of two versions in one history: those that say through what somebody came, and those of before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from approvals.models import Proposal
from audit.models import Event
from audit.replay import first_difference
from audit.sealer import seal
from audit.verify import verify
from common.clock import db_clock
from tests.audit import making
from tests.audit.bundling import Auditor, found, lines, sign, taken
from tests.audit.events import tamper
from tests.audit.making import Made
from tests.audit.tampered import TOKEN, Case, history, kept, mixed
from tests.audit.tampered import TOKEN_AT as WHERE
from tests.audit.test_verify_history import put, verified
from tests.workflows.conftest import Desk, desk

__all__ = ["desk"]


def judged(made: Made, tmp_path: Path, capsys: Any, before: Made | None = None) -> tuple[int, str, int]:
    checkpoints = kept(making.linked((before or made).events))
    code, said = verified(put(Case(making.members(made), checkpoints, (0, "", None)), tmp_path), capsys)
    first = said["first"] or {"what": "", "seq": 0}
    return code, first["what"], first["seq"]


def another_token(event: dict[str, Any]) -> None:
    event["through"] = TOKEN.replace("1", "2")


def as_of_before(event: dict[str, Any]) -> None:
    event["v"] = 1
    del event["through"]


@pytest.mark.parametrize("change", [another_token, as_of_before])
def test_which_token_it_was_cannot_be_changed_under_a_checkpoint(
    change: Callable[[dict[str, Any]], None], tmp_path: Path, capsys: Any
) -> None:
    made = mixed()
    change(made.events[WHERE - 1])
    assert judged(made, tmp_path, capsys, before=mixed()) == (1, "root", 21)


@pytest.mark.parametrize(
    "more",
    [{"v": 2}, {"through": TOKEN}, {"v": 3, "through": TOKEN}, {"v": True}, {"v": 2, "through": None},
     {"v": 2, "through": ["x"]}, {"v": "2", "through": ""}, {"v": 2.5, "through": ""}],
)  # fmt: skip
def test_there_are_two_versions_and_no_third(more: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    made, _ = history()
    made.events[WHERE - 1] |= more
    assert judged(made, tmp_path, capsys) == (1, "line", WHERE)


# -- of a real history --------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_history_of_before_goes_on_with_events_of_now(desk: Desk, tmp_path: Path) -> None:
    desk.decide(desk.proposed(order="201"))
    tamper("UPDATE audit_event SET through = NULL")
    seal(db_clock)
    before = lines(taken(desk.tenant), "events.jsonl")
    desk.decide(desk.proposed(order="202"))
    auditor = Auditor(tmp_path)
    auditor.keep(sign(desk.tenant.pk))
    bundle = taken(desk.tenant)
    told = lines(bundle, "events.jsonl")
    assert told[: len(before)] == before
    assert {(line["v"], "through" in line) for line in before} == {(1, False)}
    assert {(line["v"], "through" in line) for line in told[len(before) + 1 :]} == {(2, True)}
    assert found(auditor.verify(bundle)) == (0, "")
    assert verify(desk.tenant.pk).holds


@pytest.mark.django_db
def test_changing_it_in_the_database_breaks_the_chain(desk: Desk, tmp_path: Path) -> None:
    desk.proposed(order="201")
    auditor = Auditor(tmp_path)
    auditor.keep(sign(desk.tenant.pk))
    event = Event.objects.filter(kind="run.queued").get()
    for value in (TOKEN, None):
        tamper("UPDATE audit_event SET through = %s WHERE id = %s", value, event.pk)
        assert found(auditor.verify(taken(desk.tenant)))[0] == 1
        assert not verify(desk.tenant.pk).holds


@pytest.mark.django_db
@pytest.mark.parametrize(("before", "after"), [("", TOKEN), (None, TOKEN), ("", None)])
def test_a_proposal_is_not_given_to_another_token_unnoticed(
    desk: Desk, tmp_path: Path, before: str | None, after: str | None
) -> None:
    desk.start(order="201")
    if before is None:  # a run of before: what workers propose in it comes through nothing that is known
        tamper("UPDATE workflows_run SET requested_through = NULL")
        tamper("UPDATE audit_event SET body = body - 'row' WHERE kind = 'run.queued'")
    desk.advance()
    desk.decide(Proposal.objects.get())
    assert Proposal.objects.get().proposed_through == before
    auditor = Auditor(tmp_path)
    auditor.keep(sign(desk.tenant.pk))
    assert found(auditor.verify(taken(desk.tenant))) == (0, "")
    assert first_difference(desk.tenant.pk) == ""
    tamper("UPDATE approvals_proposal SET proposed_through = %s", after)
    assert found(auditor.verify(taken(desk.tenant)))[1] == "row"
    assert (
        first_difference(desk.tenant.pk) == f"The proposal {Proposal.objects.get().pk} is not as it was made."
    )


@pytest.mark.django_db
@pytest.mark.parametrize("after", [TOKEN, None])
def test_a_run_is_not_given_to_another_token_unnoticed(desk: Desk, after: str | None) -> None:
    run = desk.start(order="201")
    assert first_difference(desk.tenant.pk) == ""
    tamper("UPDATE workflows_run SET requested_through = %s", after)
    assert first_difference(desk.tenant.pk) == f"The run {run.pk} is not as it was asked for."
