"""What follows when something becomes known: each rule as a table. The lives in tests/model play them together."""

from datetime import timedelta
from typing import Any

import pytest

from tests import rows
from tests.model.invariants import END_TABLE
from workflows.classify import Meaning
from workflows.endings import ENDINGS, StepEnd
from workflows.enums import CommandStatus, HoldReason, VoidReason
from workflows.models import Command
from workflows.settling import (
    Move,
    Settlement,
    after_answer,
    after_late_answer,
    after_lease,
    after_lookup,
    after_nothing_happened,
    before_send,
    may_send_again,
)

C = CommandStatus
NOW = rows.now()
CLEAR: dict[str, Any] = {"frozen": False, "circuit_open": False, "failed_check": None}


def command(status: str, *, resent: bool = False) -> Command:
    run = rows.run_row(rows.tenant_row())
    step = rows.step_row(run)
    made = rows.command_row(rows.proposal_row(run, step), run, step)
    for name in rows.path_to(Command, status):
        rows.moved(made, name, NOW)
    if resent:
        rows.moved(made, "send_again", NOW)
    return made


@pytest.mark.parametrize(
    ("meaning", "first", "out_of_tries", "resent"),
    [
        (Meaning.CONFIRMED, Move.CONFIRM, Move.CONFIRM, Move.CONFIRM),
        (Meaning.REFUSED, Move.REFUSE, Move.REFUSE, Move.LOSE_TRACK),
        (Meaning.NOT_SENT, Move.FREE, Move.GIVE_UP, Move.LOSE_TRACK),
        (Meaning.NOT_EXECUTED, Move.RETRY_LATER, Move.GIVE_UP, Move.LOSE_TRACK),
        (Meaning.NOT_AUTHORIZED, Move.GIVE_UP, Move.GIVE_UP, Move.LOSE_TRACK),
        (Meaning.KEY_REUSED, Move.LOSE_TRACK, Move.LOSE_TRACK, Move.LOSE_TRACK),
        (Meaning.UNKNOWN, Move.LOSE_TRACK, Move.LOSE_TRACK, Move.LOSE_TRACK),
    ],
)
def test_after_an_answer(meaning: Meaning, first: Move, out_of_tries: Move, resent: Move) -> None:
    assert after_answer(command(C.SENT), meaning, may_retry=True) is first
    assert after_answer(command(C.SENT), meaning, may_retry=False) is out_of_tries
    assert after_answer(command(C.UNKNOWN, resent=True), meaning, may_retry=True) is resent


@pytest.mark.parametrize(
    ("meaning", "of_the_last", "of_another"),
    [
        (Meaning.CONFIRMED, Move.CONFIRM, Move.CONFIRM),
        (Meaning.REFUSED, Move.REFUSE, Move.STAY),
        (Meaning.NOT_SENT, Move.FREE, Move.STAY),
        (Meaning.NOT_EXECUTED, Move.FREE, Move.STAY),
        (Meaning.NOT_AUTHORIZED, Move.FREE, Move.STAY),
        (Meaning.KEY_REUSED, Move.STAY, Move.STAY),
        (Meaning.UNKNOWN, Move.STAY, Move.STAY),
    ],
)
def test_after_a_late_answer(meaning: Meaning, of_the_last: Move, of_another: Move) -> None:
    assert after_late_answer(command(C.UNKNOWN), meaning, of_last_attempt=True) is of_the_last
    assert after_late_answer(command(C.UNKNOWN), meaning, of_last_attempt=False) is of_another


def test_a_late_no_settles_nothing_after_a_second_send() -> None:
    twice = command(C.UNKNOWN, resent=True)
    rows.moved(twice, "lose_track", NOW)
    assert after_late_answer(twice, Meaning.REFUSED, of_last_attempt=True) is Move.STAY
    assert after_late_answer(twice, Meaning.CONFIRMED, of_last_attempt=True) is Move.CONFIRM


@pytest.mark.parametrize(
    ("finding", "settled", "move"),
    [
        ("happened", False, Move.CONFIRM),
        ("happened", True, Move.CONFIRM),
        ("not_found", False, Move.STAY),
        ("not_found", True, Move.FREE),
        ("no_answer", False, Move.STAY),
        ("no_answer", True, Move.STAY),
    ],
)
def test_after_a_lookup(finding: str, settled: bool, move: Move) -> None:
    assert after_lookup(finding, settled=settled) is move


@pytest.mark.parametrize("status", C.values)
def test_after_a_lease(status: str) -> None:
    expected = {C.CLAIMED: Move.FREE, C.SENT: Move.LOSE_TRACK}.get(C(status), Move.STAY)
    assert after_lease(command(status)) is expected


@pytest.mark.parametrize(
    ("facts", "settlement"),
    [
        ({}, Settlement(Move.FREE)),
        ({"cancel_wished": True, "frozen": True, "failed_check": VoidReason.LAPSED}, Settlement(Move.CANCEL)),
        (
            {"frozen": True, "failed_check": VoidReason.LAPSED},
            Settlement(Move.HOLD, hold_reason=HoldReason.FREEZE),
        ),
        ({"circuit_open": True}, Settlement(Move.HOLD, hold_reason=HoldReason.CIRCUIT)),
        ({"failed_check": VoidReason.REVIEWER}, Settlement(Move.VOID, void_reason=VoidReason.REVIEWER)),
    ],
)
def test_after_nothing_happened_from_unknown(facts: dict[str, Any], settlement: Settlement) -> None:
    assert (
        after_nothing_happened(command(C.UNKNOWN), **({"cancel_wished": False} | CLEAR | facts)) == settlement
    )


def test_after_nothing_happened_what_waits_or_is_held_already_stays() -> None:
    for status in (C.READY, C.RETRY_WAIT, C.CLAIMED):
        assert after_nothing_happened(command(status), cancel_wished=False, **CLEAR).move is Move.STAY
    frozen = CLEAR | {"frozen": True}
    assert after_nothing_happened(command(C.HELD), cancel_wished=False, **frozen).move is Move.STAY
    assert after_nothing_happened(command(C.HELD), cancel_wished=False, **CLEAR).move is Move.FREE


@pytest.mark.parametrize("status", [C.SENT, *C.final_states])
def test_nothing_is_settled_while_a_request_is_on_its_way_or_after_the_end(status: str) -> None:
    with pytest.raises(AssertionError):
        after_nothing_happened(command(status), cancel_wished=False, **CLEAR)


@pytest.mark.parametrize(
    ("facts", "settlement"),
    [
        ({}, Settlement(Move.SEND)),
        ({"failed_check": VoidReason.PIN, "frozen": True}, Settlement(Move.VOID, void_reason=VoidReason.PIN)),
        ({"frozen": True, "circuit_open": True}, Settlement(Move.HOLD, hold_reason=HoldReason.FREEZE)),
        ({"circuit_open": True}, Settlement(Move.HOLD, hold_reason=HoldReason.CIRCUIT)),
    ],
)
def test_before_the_send(facts: dict[str, Any], settlement: Settlement) -> None:
    assert before_send(**(CLEAR | facts)) == settlement


def test_a_second_send_needs_a_provider_that_still_remembers_the_key_and_all_checks() -> None:
    day = timedelta(days=1)
    unknown = command(C.UNKNOWN)
    assert may_send_again(unknown, key_retention=day, now=NOW, **CLEAR)
    assert not may_send_again(unknown, key_retention=None, now=NOW, **CLEAR)
    assert not may_send_again(unknown, key_retention=day, now=NOW + day, **CLEAR)
    assert not may_send_again(unknown, key_retention=day, now=NOW, **(CLEAR | {"frozen": True}))
    assert not may_send_again(unknown, key_retention=day, now=NOW, **(CLEAR | {"circuit_open": True}))
    assert not may_send_again(
        unknown, key_retention=day, now=NOW, **(CLEAR | {"failed_check": VoidReason.LAPSED})
    )
    assert not may_send_again(command(C.SENT), key_retention=day, now=NOW, **CLEAR)


def test_the_table_of_ends_is_the_one_that_was_copied_by_hand() -> None:
    step = {
        StepEnd.COMPLETED: ("completed", ""), StepEnd.PERSON: ("waiting", "person"), StepEnd.SKIPPED: ("skipped", ""),
        StepEnd.APPROVAL_OF_NEXT_VERSION: ("waiting", "approval"), StepEnd.CANCELLED: ("cancelled", ""),
    }  # fmt: skip
    proposal = {
        "consume": "consumed", "lapse": "lapsed", "invalidate": "invalidated", "withdraw": "withdrawn",
        "supersede": "superseded",
    }  # fmt: skip
    table = {
        end: (proposal[row.proposal], step[row.step], {str(effect) for effect in row.effects})
        for end, row in ENDINGS.items()
    }
    assert table == END_TABLE
