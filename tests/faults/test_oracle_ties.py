"""The oracle on hand-made rows: what belongs together, and ends for a reason that is true."""

from typing import Any
from uuid import UUID

import pytest

from tests.faults.test_oracle import COMMAND, RUN, arrival, at, event, good, names, verdict

TWICE = [UUID(int=21), UUID(int=22)]


def ended(status: str, **fields: Any) -> dict[str, Any]:
    """The good life, but its command ended so, and nothing arrived."""
    rows = good()
    rows["commands"][0] |= {"status": status, "effect": "none", "settled_by": "check"} | fields
    rows["arrivals"], rows["attempts"] = [], []
    rows["events"] = [
        *rows["events"][:3], event(f"command.{status}", 4, "claimed"), event("proposal.invalidated", 4, "approved"),
    ]  # fmt: skip
    rows["commands"][0]["state_version"] = 3
    rows["proposals"][0]["status"] = "invalidated"
    return rows


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("void", "lapsed"), ("void", "policy"), ("void", "reviewer"), ("void", "pin"), ("void", "digest"),
        ("void", "withdrawn"), ("dead", "tries_exhausted"), ("dead", "earlier_effect"), ("dead", "whatever"),
        ("cancelled", ""), ("refused", ""),
    ],
)  # fmt: skip
def test_ended_for_a_reason_that_is_not_so(status: str, word: str) -> None:
    reason = {"void_reason" if status == "void" else "failure_code": word}
    found = verdict(ended(status, **reason))
    assert (found.counters["unfounded"], found.names) == (1, ["I3 NO-LOST-APPROVAL"])


def test_ended_for_a_reason_that_is_so() -> None:
    rows = ended("void", void_reason="lapsed")
    rows["proposals"][0]["execute_by"] = at(4)
    assert names(rows) == []
    rows = ended("void", void_reason="reviewer")
    left = event("command.ready", 2) | {"kind": "user.deactivated", "subject_type": "user", "to_state": ""}
    rows["events"].append(left | {"subject_id": UUID(int=9)})
    assert names(rows) == []


def test_nobody_took_it_though_everything_was_well() -> None:
    """Approved at 0, lapsed at 140: a long time to be passed over; but not when processes had died until 80."""
    rows = ended("void", void_reason="lapsed", ended_at=at(141))
    rows["proposals"][0] |= {"execute_by": at(140), "decided_at": at(0)}
    assert names(rows | {"times": {"healed": at(80)}}) == []
    assert names(rows | {"times": {"healed": at(10)}}) == ["I3"]


def test_the_run_never_hears_of_it() -> None:
    rows = good() | {"runs": [{"id": RUN, "status": "executing", "cancel_requested_at": None}]}
    assert verdict(rows).counters["not_carried_over"] == 1
    rows["runs"][0]["status"] = "completed"
    assert verdict(rows).counters["not_carried_over"] == 0


def test_called_done_by_the_name_of_another_effect() -> None:
    rows = good()
    rows["commands"][0]["provider_reference"] = "re_2"
    found = verdict(rows)
    assert (found.counters["wrong_reference"], found.names) == (1, ["I5 UNKNOWN-IS-NOT-FAILED"])


def test_in_another_tenants_name() -> None:
    rows = good()
    elsewhere = arrival(rows["actions"][0], 3, tenant="other")
    assert names(rows | {"elsewhere": [elsewhere | {"key": "theirs"}]}) == []
    assert names(rows | {"elsewhere": [elsewhere]}) == ["I24"]


def test_sent_after_somebody_wanted_it_to_stop() -> None:
    run = {"id": RUN, "status": "completed", "cancel_requested_at": at(1)}
    assert "CANCEL" in names(good() | {"runs": [run]})
    assert "CANCEL" not in names(good() | {"runs": [run | {"cancel_requested_at": at(3)}]})


@pytest.mark.parametrize(
    ("amount", "people", "enough"), [("10.00", 1, True), ("95.00", 1, False), ("95.00", 2, True)]
)
def test_settled_by_so_many_people(amount: str, people: int, enough: bool) -> None:
    rows = good()
    rows["actions"][0].arguments["amount"] = amount
    rows["arrivals"] = [arrival(rows["actions"][0], 3)]
    rows["commands"][0]["settled_by"] = "person"
    rows["attestations"] = [
        {"command_id": COMMAND, "says": "happened", "person": person, "replaced_at": None, "at": at(4)}
        for person in TWICE[:people]
    ]
    assert ("I29" not in names(rows)) is enough


def test_more_tries_than_are_allowed_and_too_soon() -> None:
    rows = good()
    first = rows["attempts"][0]
    throttled = first | {"outcome": "not_executed", "http_status": 429, "ended_at": at(2.5)}
    soon = first | {"number": 2, "sent_at": at(2.6)}
    assert "TRIES" in names(rows | {"attempts": [throttled, soon]})
    assert "TRIES" not in names(rows | {"attempts": [throttled, soon | {"sent_at": at(3)}]})
    sends = [event("command.sent", 2, "claimed") for _ in range(9)]
    assert "TRIES" in names(rows | {"events": [*rows["events"][:3], *sends]})


def test_taken_away_before_its_time() -> None:
    rows = good()
    rows["attempts"][0] |= {"outcome": "lease_over", "ended_at": at(2.1)}
    assert "I8" in names(rows)


def test_sent_while_the_circuit_was_open() -> None:
    opened = event("command.ready", 1) | {
        "kind": "hold.in_force", "subject_type": "hold", "subject_id": UUID(int=31), "to_state": "in_force",
        "body": {"reason": "circuit"},
    }  # fmt: skip
    rows = good()
    assert "FREEZE" in names(rows | {"events": [opened, *rows["events"]]})
    lifted = opened | {"to_state": "lifting", "at": at(1.5), "committed_at": at(1.5)}
    assert "FREEZE" not in names(rows | {"events": [opened, lifted, *rows["events"]]})


def test_a_key_that_was_used_with_other_parameters() -> None:
    rows = good()
    rows["attempts"][0] |= {"outcome": "key_reused", "http_status": 422, "ended_at": at(3)}
    assert "I7" not in names(rows | {"events": rows["events"][:4]})
    rows["attempts"][0]["ended_at"] = at(1)
    assert "I7" in names(rows)


def test_an_event_written_apart_or_of_another_digest() -> None:
    rows = good()
    rows["events"] = [one | {"xid": 7, "digest": "digest"} for one in rows["events"]]
    rows["commands"][0]["row_xid"] = 7
    assert names(rows) == []
    rows["commands"][0]["row_xid"] = 8
    assert names(rows) == ["I21"]
    rows["commands"][0]["row_xid"] = 7
    rows["events"][3] = rows["events"][3] | {"digest": "other"}
    assert names(rows) == ["I14"]


def test_older_over_newer_and_two_at_once() -> None:
    rows, other = good(), good()
    second = UUID(int=11)
    newer = other["actions"][0]
    newer.proposal_id, newer.arguments["amount"] = second, "21.00"
    rows["actions"].append(newer)
    rows["proposals"].append(
        other["proposals"][0] | {"id": second, "idempotency_key": "2", "business_key": "2"}
    )
    command = other["commands"][0] | {"id": UUID(int=12), "proposal_id": second, "provider_reference": "re_2"}
    rows["commands"].append(command)
    rows["arrivals"].insert(0, arrival(newer, 1.5, key="2", ref="re_2"))
    assert "ORDER" in names(rows)
    rows["proposals"].reverse()  # then it is the older one that was done first
    assert "ORDER" not in names(rows)
    under_way = event("command.claimed", 1.5, "ready", subject_id=UUID(int=12))
    rows["events"].insert(2, under_way)
    assert "ORDER" in names(rows)
