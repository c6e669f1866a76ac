"""When each choice is offered, as tables: for every state of an order, of a packet, and for every clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from approvals.enums import ProposalStatus
from repair.choices.case import LESSONS
from repair.choices.facts import Facts, OrderFacts
from repair.choices.registry import BY_CODE, CHOICES, IN_BULK
from repair.enums import PacketStatus
from workflows.enums import CommandStatus

NOW = datetime(2026, 9, 19, 12, 0, tzinfo=UTC)
AGO, SOON = NOW - timedelta(minutes=5), NOW + timedelta(minutes=5)
OUTCOME = {"look_up", "happened", "partial", "did_not_happen", "send_again"}
UNKNOWN = OrderFacts("unknown", lands_until=AGO, key_until=SOON)
DOUBT = Facts(
    now=NOW, may_repair=True, packet="open", cause="command_unknown", run="unknown", step="waiting",
    waiting_for="provider", proposal="approved", decided=True, order=UNKNOWN,
)  # fmt: skip
"""An outcome that nobody knows, with a provider that can be asked and remembers keys."""
LAPSED = replace(
    DOUBT, cause="command_lapsed", run="manual_repair", waiting_for="person", proposal="lapsed",
    order=OrderFacts("void", void_reason="lapsed", may_ask_again=True),
)  # fmt: skip
REFUSED = replace(
    LAPSED, cause="command_refused", proposal="consumed", order=OrderFacts("refused"), editable=("amount",)
)


def why(code: str, facts: Facts) -> str:
    """The reason for which a choice is not offered; empty where it is."""
    found = BY_CODE[code].rule(facts)
    return found.code if found is not None else ""


def offered(facts: Facts) -> set[str]:
    return {choice.code for choice in CHOICES if choice.rule(facts) is None}


# -- by the state of the order, of the packet, and of the person ---------------------------------------------------

BY_ORDER = {
    "ready": {"take", "route", "cancel", "close"},
    "claimed": {"take", "route", "cancel", "close"},
    "sent": {"take", "route", "cancel"},
    "retry_wait": {"take", "route", "cancel", "close"},
    "held": {"take", "route", "cancel", "close"},
    "unknown": {"take", "route", "cancel"} | OUTCOME,
    "confirmed": {"take", "route", "cancel", "close"},
    "refused": {"take", "route", "cancel", "close"},
    "dead": {"take", "route", "cancel", "close"},
    "cancelled": {"take", "route", "cancel", "close"},
    "void": {"take", "route", "cancel", "close"},
}


def test_the_table_has_every_state_of_an_order() -> None:
    assert set(BY_ORDER) == set(CommandStatus.values)


@pytest.mark.parametrize("status", BY_ORDER)
def test_what_is_offered_for_each_state_of_an_order(status: str) -> None:
    """The step does not wait for a person here: what depends on that has tables of its own."""
    assert offered(replace(DOUBT, order=replace(UNKNOWN, status=status))) == BY_ORDER[status]


@pytest.mark.parametrize("status", PacketStatus.values)
def test_a_closed_case_only_lets_its_cause_and_what_is_learned_be_said(status: str) -> None:
    found = offered(replace(DOUBT, packet=status))
    if status in PacketStatus.open_states:
        assert not found & {"note_cause", *LESSONS}
        assert found >= OUTCOME
    else:
        assert found == {"note_cause", *LESSONS}
        assert offered(replace(DOUBT, packet=status, cause_said=True)) == {*LESSONS}
        marked = replace(DOUBT, packet=status, cause_said=True, lessons=frozenset(LESSONS[:2]))
        assert offered(marked) == {LESSONS[2]}


def test_nothing_is_offered_to_others() -> None:
    for facts in (DOUBT, LAPSED, REFUSED, replace(DOUBT, packet="resolved")):
        assert offered(replace(facts, may_repair=False)) == set()
        assert {why(choice.code, replace(facts, may_repair=False)) for choice in CHOICES} == {"role_missing"}


# -- an outcome in doubt ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "change", "expected"),
    [
        ("look_up", {"can_look_up": False}, "no_look_up"),
        ("look_up", {"known": False}, "unknown_version"),
        ("look_up", {"asked_soon": True}, "look_up_due"),
        ("look_up", {"lands_until": SOON}, ""),
        ("look_up", {"held_by": "freeze"}, ""),
        ("happened", {"lands_until": SOON}, ""),
        ("partial", {"failed_check": "lapsed"}, ""),
        ("did_not_happen", {"lands_until": SOON}, "not_settled_yet"),
        ("did_not_happen", {"lands_until": NOW}, ""),
        ("did_not_happen", {"failed_check": "policy"}, ""),
        ("send_again", {"key_until": None}, "no_key_memory"),
        ("send_again", {"key_until": NOW}, "key_forgotten"),
        ("send_again", {"key_until": NOW + timedelta(microseconds=1)}, ""),
        ("send_again", {"failure_code": "key_reused"}, "key_reused"),
        ("send_again", {"known": False}, "unknown_version"),
        ("send_again", {"lands_until": SOON}, "not_settled_yet"),
        ("send_again", {"failed_check": "lapsed"}, "check_lapsed"),
        ("send_again", {"failed_check": "policy"}, "check_policy"),
        ("send_again", {"failed_check": "reviewer"}, "check_reviewer"),
        ("send_again", {"failed_check": "digest"}, "check_digest"),
        ("send_again", {"held_by": "freeze"}, "held"),
        ("send_again", {"held_by": "circuit"}, "held"),
        ("send_again", {"tries_left": False}, "tries_exhausted"),
        ("send_again", {"asked_soon": True}, "look_up_due"),
        ("send_again", {"can_look_up": False}, ""),
    ],
)
def test_what_an_unknown_order_allows(code: str, change: dict[str, object], expected: str) -> None:
    assert why(code, replace(DOUBT, order=replace(UNKNOWN, **change))) == expected  # type: ignore[arg-type]


def test_without_an_order_there_is_no_outcome_to_speak_of() -> None:
    assert {why(code, replace(DOUBT, order=None)) for code in OUTCOME} == {"no_order"}
    sent = replace(DOUBT, order=replace(UNKNOWN, status="sent"))
    assert {why(code, sent) for code in OUTCOME} == {"still_under_way"}


def test_the_proposers_side_never_attests() -> None:  # invariant 6
    found = replace(DOUBT, own_side=True)
    assert {code: why(code, found) for code in ("happened", "partial", "did_not_happen")} == dict.fromkeys(
        ("happened", "partial", "did_not_happen"), "own_proposal"
    )
    assert (why("look_up", found), why("take", found)) == ("", "")


def test_a_wish_to_cancel_sends_nothing_again() -> None:
    found = replace(DOUBT, cancel_wished=True)
    assert (why("send_again", found), why("cancel", found)) == ("cancel_requested", "cancel_requested")
    assert (why("did_not_happen", found), why("look_up", found)) == ("", "")


# -- what is asked anew ----------------------------------------------------------------------------------------------

ASKED = {
    # status of the proposal: ask again, correct
    "pending": ("not_to_be_repeated", "not_without_effect"),
    "approved": ("not_to_be_repeated", "not_without_effect"),
    "rejected": ("not_to_be_repeated", "not_without_effect"),
    "changes_requested": ("not_to_be_repeated", ""),
    "expired": ("", ""),
    "withdrawn": ("not_to_be_repeated", "not_without_effect"),
    "superseded": ("not_to_be_repeated", "not_without_effect"),
    "invalidated": ("", ""),
    "consumed": ("not_to_be_repeated", "not_without_effect"),
    "lapsed": ("", ""),
}


def test_the_table_has_every_state_of_a_proposal() -> None:
    assert set(ASKED) == set(ProposalStatus.values)


@pytest.mark.parametrize("status", ASKED)
def test_what_may_be_asked_again_by_how_the_proposal_ended(status: str) -> None:
    facts = replace(LAPSED, proposal=status, decided=False, order=None, editable=("amount",))
    assert (why("ask_again", facts), why("correct", facts)) == ASKED[status]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"waiting_for": "approval"}, "not_waiting"),
        ({"step": "completed", "waiting_for": ""}, "not_waiting"),
        ({"run": "cancelled"}, "run_ended"),
        ({"cancel_wished": True}, "cancel_requested"),
        ({"proposal": ""}, "never_proposed"),
        ({"proposal": "expired", "decided": True}, "not_to_be_repeated"),
        ({"order": OrderFacts("void", may_ask_again=False)}, "not_to_be_repeated"),
        ({"order": OrderFacts("void", may_ask_again=True, said_late=True)}, "may_have_happened"),
    ],
)
def test_ask_again(change: dict[str, object], expected: str) -> None:
    assert why("ask_again", replace(LAPSED, **change)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"editable": ()}, "not_editable"),
        ({"editable": (), "order": OrderFacts("dead")}, ""),
        ({"order": OrderFacts("dead", said_late=True)}, "may_have_happened"),
        ({"order": OrderFacts("confirmed")}, "not_without_effect"),
        ({"order": OrderFacts("unknown")}, "not_without_effect"),
        ({"cancel_wished": True}, "cancel_requested"),
        ({"waiting_for": "provider"}, "not_waiting"),
    ],
)
def test_correct_and_propose_anew(change: dict[str, object], expected: str) -> None:
    assert why("correct", replace(REFUSED, **change)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"asks": False}, "no_data_asked"),
        ({}, ""),
        ({"waiting_for": "data"}, ""),
        ({"waiting_for": "data", "wait_over": True}, "wait_over"),
        ({"waiting_for": "approval"}, "not_waiting"),
        ({"run": "failed"}, "run_ended"),
        ({"cancel_wished": True}, "cancel_requested"),
    ],
)
def test_provide_the_missing_data(change: dict[str, object], expected: str) -> None:
    assert why("supply", replace(LAPSED, **({"asks": True} | change))) == expected  # type: ignore[arg-type]


# -- whose it is, and how it ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("packet", "mine", "take", "give_back"),
    [
        ("open", False, "", "not_yours"), ("open", True, "", ""), ("in_progress", True, "already_yours", ""),
        ("in_progress", False, "", "not_yours"), ("awaiting_second", False, "", "not_yours"),
        ("awaiting_second", True, "already_yours", ""),
    ],
)  # fmt: skip
def test_whose_it_is(packet: str, mine: bool, take: str, give_back: str) -> None:
    facts = replace(DOUBT, packet=packet, mine=mine)
    assert (why("take", facts), why("give_back", facts)) == (take, give_back)


@pytest.mark.parametrize(
    ("change", "cancel", "close"),
    [
        ({}, "", "outcome_unknown"),
        ({"order": replace(UNKNOWN, status="sent")}, "", "outcome_unknown"),
        ({"order": OrderFacts("held")}, "", ""),
        ({"order": None, "run": "manual_repair"}, "", ""),
        ({"order": OrderFacts("confirmed"), "run": "completed"}, "run_ended", ""),
        ({"cause": "late_effect"}, "", ""),
        ({"cause": "late_effect", "order": OrderFacts("void"), "run": "failed"}, "run_ended", ""),
    ],
)
def test_how_a_case_ends(change: dict[str, object], cancel: str, close: str) -> None:
    facts = replace(DOUBT, **change)  # type: ignore[arg-type]
    assert (why("cancel", facts), why("close", facts)) == (cancel, close)


# -- what is declared ------------------------------------------------------------------------------------------------


def test_each_choice_is_declared_whole() -> None:
    codes = [choice.code for choice in CHOICES]
    assert len(set(codes)) == len(codes)
    for choice in CHOICES:
        assert (choice.act is None) != (choice.inside is None), choice.code
        assert choice.title and choice.says and choice.icon
        assert not choice.danger or choice.needs, choice.code


def test_in_bulk_goes_only_what_needs_no_word_about_a_single_case() -> None:
    assert {choice.code for choice in IN_BULK} == {"take", "look_up", "ask_again", "cancel", "close"}
