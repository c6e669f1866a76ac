"""What may have happened: a table for each state, each line with a way to tell it from the others."""

import pytest

from repair.packet.possible import State, possibilities
from repair.packet.runbook import parsed, runbook_of, step_for
from repair.tables import CAUSES

DOUBT = {"status": "unknown", "effect": "unknown", "tries": 1, "key": "K1", "target": "order:1"}


def codes(state: State) -> list[str]:
    return [row.code for row in possibilities(state)]


@pytest.mark.parametrize(
    ("facts", "added"),
    [
        ({}, "still_to_come"),
        ({"tries": 2}, "twice"),
        ({"resent": True}, "twice"),
        ({"code": "key_reused"}, "another_under_key"),
        ({"restored": True}, "after_backup"),
    ],
)
def test_what_is_in_doubt_names_all_that_may_be(facts: dict[str, object], added: str) -> None:
    found = codes(State(cause="command_unknown", **(DOUBT | facts)))  # type: ignore[arg-type]
    assert {"happened_unheard", "never_arrived", "refused_unheard", "otherwise", added} <= set(found)


def test_once_the_provider_has_settled_nothing_is_still_to_come() -> None:
    assert "still_to_come" not in codes(State(cause="command_unknown", is_settled=True, **DOUBT))  # type: ignore[arg-type]


def test_a_provider_that_cannot_look_up_is_not_waited_for() -> None:
    rows = possibilities(State(cause="command_unknown", can_look_up=False, **DOUBT))  # type: ignore[arg-type]
    assert "ask its people" in rows[0].tell_by


@pytest.mark.parametrize(("code", "first"), [
    ("tries_exhausted", "down"), ("credential_refused", "revoked"), ("earlier_effect", "already"),
    ("quarantined", "too_big"),
])  # fmt: skip
def test_why_it_was_given_up_leads_to_other_questions(code: str, first: str) -> None:
    certain, next_, *_ = codes(State(cause="command_dead", status="dead", effect="none", code=code))
    assert (certain, next_) == ("nothing", first)


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_every_cause_has_possibilities_that_can_be_told_apart_and_a_step(cause: str) -> None:
    rows = possibilities(State(cause=cause))
    assert rows
    assert len({row.code for row in rows}) == len({row.what for row in rows}) == len(rows)
    assert len({row.tell_by for row in rows}) == len(rows)
    assert step_for("no-such-flow", cause) is not None


# -- runbooks -------------------------------------------------------------------------------------------------------

TEXT = """before

# One
A line
that goes on.
- first
- second
  goes on
1. third

    some code

### command_unknown, late_effect
<b>look</b> [x](javascript:1) \u202e
"""


def test_of_markdown_only_the_harmless_part_means_something() -> None:
    first, one, step = parsed(TEXT)
    assert [block.text for block in first.blocks] == ["before"]
    assert [(block.kind, block.text) for block in one.blocks] == [
        ("text", "A line that goes on."), ("item", "first"), ("item", "second goes on"), ("item", "third"),
        ("code", "some code"),
    ]  # fmt: skip
    assert step.causes == ("command_unknown", "late_effect")
    assert step.blocks[0].text == "<b>look</b> [x](javascript:1) ⟦U+202E⟧"


def test_the_example_has_a_runbook_with_all_that_one_needs() -> None:
    from examples.refunds import flows  # noqa: F401 - it registers the workflow

    titles = {section.title for section in runbook_of("refund-triage")}
    assert {
        "What it does", "What it cannot do", "What it records", "How to stop it safely", "Whom to call",
        "How to roll back",
    } <= titles  # fmt: skip
    own = step_for("refund-triage", "command_unknown")
    assert own is not None and own.own and "Do not refund by hand." in own.lines[0]
    shared = step_for("refund-triage", "stalled")
    assert shared is not None and not shared.own
