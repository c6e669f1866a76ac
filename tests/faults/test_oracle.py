"""The oracle on hand-made rows: each thing that must never be, and its name."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from tests.faults.facts import Facts, Row
from tests.faults.judging_records import replay
from tests.faults.oracle import Judgement, judge
from tests.faults.people import Action

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
PROPOSAL, COMMAND, RUN, STEP = (UUID(int=number) for number in (1, 2, 3, 4))
ARGUMENTS = {
    "order": "o1",
    "amount": "10.00",
    "currency": "EUR",
    "reason": "damaged",
    "receipt_to": "a@example.com",
}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def event(kind: str, seconds: float, before: str = "", **fields: Any) -> Row:
    """``command.sent`` and the like; the state is the kind's second word."""
    thing, _, state = kind.partition(".")
    subject = {"command": COMMAND, "proposal": PROPOSAL}[thing]
    return {
        "kind": kind, "subject_type": thing, "subject_id": subject, "from_state": before, "to_state": state,
        "performed_by": "worker:a", "owner": "worker", "at": at(seconds), "committed_at": at(seconds),
    } | fields  # fmt: skip


def arrival(action: Action, seconds: float, **fields: Any) -> Row:
    row = {
        "key": "key", "body_hash": action.body_hash, "first_byte_at": at(seconds), "effect": True,
        "effect_at": at(seconds), "status": 201, "ref": "re_1",
    }  # fmt: skip
    return row | fields


def good() -> dict[str, Any]:
    """One action that was approved, sent once, and confirmed."""
    action = Action(0, "good", "faults.lookup", dict(ARGUMENTS), PROPOSAL, "digest", [UUID(int=9)])
    proposal = {
        "id": PROPOSAL, "status": "consumed", "digest": "digest", "needed": 1, "excluded_users": [],
        "decide_by": at(60), "execute_by": at(60), "business_key": "thing", "idempotency_key": "key",
    }  # fmt: skip
    command = {
        "id": COMMAND, "proposal_id": PROPOSAL, "status": "confirmed", "effect": "happened", "void_reason": "",
        "hold_reason": "", "state_version": 4, "idempotency_key": "key", "run_id": RUN, "failure_code": "",
        "settled_by": "answer", "provider_reference": "re_1", "ended_at": at(4),
    }  # fmt: skip
    return {
        "actions": [action], "proposals": [proposal], "commands": [command], "kind": "lookup",
        "arrivals": [arrival(action, 3)],
        "attempts": [{
            "command_id": COMMAND, "number": 1, "sent_at": at(2), "outcome": "confirmed", "http_status": 201,
            "late_evidence": None, "ended_at": at(4),
        }],
        "decisions": [{
            "proposal_id": PROPOSAL, "kind": "approve", "user_id": UUID(int=9), "digest": "digest",
            "replaced_at": None,
        }],
        "events": [
            event("proposal.approved", 0, "pending"), event("command.ready", 0), event("command.claimed", 1, "ready"),
            event("command.sent", 2, "claimed"), event("command.confirmed", 4, "sent"),
            event("proposal.consumed", 4, "approved"),
        ],
    }  # fmt: skip


def verdict(rows: dict[str, Any]) -> Judgement:
    return judge(Facts(**rows))


def names(rows: dict[str, Any]) -> list[str]:
    return [name.split()[0] for name in verdict(rows).names]


def test_nothing_is_wrong_with_a_good_life() -> None:
    found = verdict(good())
    assert found.violations == []
    assert (found.effects, dict(found.ends)) == (1, {"confirmed": 1})
    assert set(found.counters.values()) == {0}


def test_two_effects_are_one_duplicate() -> None:
    rows = good()
    rows["arrivals"].append(arrival(rows["actions"][0], 3.5))
    found = verdict(rows)
    assert found.counters["duplicates"] == 1
    assert {"I1 AT-MOST-ONCE-EFFECT", "I6 NO-BLIND-RETRY"} <= set(found.names)


@pytest.mark.parametrize("through", [["ready"], ["held", "ready"]])
def test_a_second_request_after_a_settled_look_up_is_allowed(through: list[str]) -> None:
    """Also where a freeze, or a provider in trouble, keeps it waiting after the look."""
    rows = good()
    first = arrival(rows["actions"][0], 3, effect=False)
    rows["arrivals"] = [first, arrival(rows["actions"][0], 12)]
    rows["attempts"].append(dict(rows["attempts"][0]) | {"number": 2, "sent_at": at(11)})
    rows["attempts"][0] = dict(rows["attempts"][0]) | {"outcome": "unknown", "http_status": None}
    rows["lookups"] = [{"command_id": COMMAND, "finding": "not_found", "asked_at": at(9)}]
    rows["events"] = [
        *rows["events"][:4], event("command.unknown", 4, "sent"),
        *(event(f"command.{to}", 9, before) for before, to in pairwise(["unknown", *through])),
        event("command.claimed", 10, "ready"), event("command.sent", 11, "claimed"),
        event("command.confirmed", 13, "sent"), event("proposal.consumed", 13, "approved"),
    ]  # fmt: skip
    rows["commands"][0]["state_version"] = 7 + len(through)
    assert names(rows) == []
    rows["lookups"][0]["asked_at"] = at(4.5)  # the settle time was not over
    assert names(rows) == ["I6"]


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("pending", ["I2"]), ("rejected", ["I2"]), ("revoked", ["I2", "I16"]), ("tampered", ["I2", "I14"]),
        ("seal_broken", ["I2", "I14"]), ("old_policy", ["I2", "I15"]), ("lapsed", ["I2", "I13"]),
    ],
)  # fmt: skip
def test_what_must_not_run_has_run(what: str, expected: list[str]) -> None:
    rows = good()
    rows["actions"][0].what = what
    assert names(rows) == expected


def test_an_arrival_that_nobody_asked_for() -> None:
    rows = good()
    rows["arrivals"].append(arrival(rows["actions"][0], 3, key="other", body_hash="sha256:other"))
    assert names(rows) == ["I2"]


def test_other_bytes_than_were_approved() -> None:
    rows = good()
    rows["arrivals"][0]["body_hash"] = "sha256:other"
    assert names(rows) == ["I14"]


def test_another_key() -> None:
    rows = good()
    rows["arrivals"][0]["key"] = "key-2"
    assert names(rows) == ["I7"]


@pytest.mark.parametrize("status", ["refused", "dead", "void", "cancelled"])
def test_called_failed_and_it_happened(status: str) -> None:
    rows = good()
    rows["commands"][0] |= {"status": status, "effect": "none"}
    rows["events"][4] = event(f"command.{status}", 4, "sent")
    found = verdict(rows)
    assert (found.counters["false_failed"], found.counters["unfounded"]) == (1, 1)
    assert found.names == ["I3 NO-LOST-APPROVAL", "I5 UNKNOWN-IS-NOT-FAILED"]


def test_called_done_and_nothing_happened() -> None:
    rows = good()
    rows["arrivals"] = []
    assert names(rows) == ["I5"]


def test_arrived_before_sent_was_committed() -> None:
    rows = good()
    rows["arrivals"][0]["first_byte_at"] = at(1.5)
    found = verdict(rows)
    assert (found.counters["sent_without_intent"], found.names) == (1, ["I4 INTENT-BEFORE-EFFECT"])


def test_arrived_long_after_its_deadline() -> None:
    rows = good()
    rows["arrivals"][0]["first_byte_at"] = at(9)
    assert "I9" in names(rows)


def test_approved_and_forgotten() -> None:
    rows = good()
    rows |= {"commands": [], "arrivals": [], "attempts": []}
    rows["events"] = rows["events"][:1]
    rows["proposals"][0]["status"] = "approved"
    assert verdict(rows).counters["lost"] == 1


def test_still_open_is_a_violation_unless_a_person_is_asked_before_a_blind_provider() -> None:
    rows = good()
    rows["commands"][0] |= {"status": "unknown", "effect": "unknown"}
    rows["events"] = [*rows["events"][:4], event("command.unknown", 4, "sent")]
    rows["proposals"][0]["status"] = "approved"
    assert names(rows) == ["I3"]
    rows |= {"kind": "blind", "packets": [{"command_id": COMMAND, "status": "open"}]}
    assert names(rows) == []
    rows["packets"] = [{"command_id": COMMAND, "status": "resolved"}]
    assert names(rows) == ["I3"]


def test_ended_twice() -> None:
    rows = good()
    rows["events"].append(event("command.refused", 5, "confirmed"))
    rows["commands"][0] |= {"status": "refused", "effect": "none", "state_version": 5}
    assert "I8" in names(rows)


def test_moved_by_a_worker_that_no_longer_had_it() -> None:
    rows = good()
    rows["events"][4] = event("command.confirmed", 4, "sent", performed_by="worker:b")
    assert names(rows) == ["I8"]


def test_approved_and_sent_too_late() -> None:
    rows = good()
    rows["proposals"][0] |= {"decide_by": at(-1)}
    assert names(rows) == ["I13"]
    rows["proposals"][0] |= {"decide_by": at(60), "execute_by": at(1)}
    assert names(rows) == ["I13"]


def test_sent_after_it_was_withdrawn() -> None:
    rows = good()
    rows["events"].insert(3, event("proposal.withdrawn", 1.5, "approved"))
    assert "I2" in names(rows)


def test_sent_under_a_policy_that_was_replaced_and_while_frozen() -> None:
    rows = good()
    rows["actions"][0].operation = "faults.lookup.moving"
    assert names(rows | {"times": {"policy": at(1)}}) == ["I15"]
    assert names(rows | {"times": {"policy": at(3)}}) == []
    assert verdict(rows | {"times": {"frozen": at(1)}}).names == ["FREEZE NOTHING-SENT-WHILE-FROZEN"]
    assert names(rows | {"times": {"frozen": at(1), "lifted": at(1.5)}}) == []


def test_too_few_people() -> None:
    rows = good()
    rows["proposals"][0]["needed"] = 2
    assert names(rows) == ["I12"]


def test_decided_twice() -> None:
    rows = good()
    rows["events"].append(event("proposal.rejected", 1, "approved"))
    assert "I11" in names(rows)


def test_the_same_thing_under_two_approvals() -> None:
    rows, other = good(), good()
    second = UUID(int=11)
    other["actions"][0].proposal_id = second
    other["actions"][0].what = rows["actions"][0].what = "twin"
    rows["actions"] += other["actions"]
    rows["proposals"].append(other["proposals"][0] | {"id": second, "idempotency_key": "key2"})
    rows["arrivals"].append(arrival(other["actions"][0], 3, key="key2"))
    assert "I1" in names(rows)


def test_a_lost_event_and_one_too_many() -> None:
    rows = good()
    del rows["events"][4]
    assert names(rows) == ["I21", "I23"]
    rows = good()
    rows["events"].append(event("command.confirmed", 5, "sent"))
    assert "I21" in names(rows)


def test_a_chain_that_does_not_hold() -> None:
    assert names(good() | {"chains_hold": False, "chains_say": "changed at 3"}) == ["I22"]


def test_replaying_finds_gaps() -> None:
    events = [
        event("command.ready", 0),
        event("command.claimed", 1, "ready"),
        event("command.confirmed", 2, "sent"),
    ]
    state, gaps = replay(events)
    assert (state, len(gaps)) == ("confirmed", 1)
    assert replay([]) == (None, [])
