"""Tags of the desk: what they escape, what they never change, and the one table of states."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import TextChoices
from django.template import Context, Template
from django.utils.safestring import mark_safe

from approvals.enums import Mode, ProposalStatus
from common import spans
from common.states_ui import STATES, state_ui
from common.templatetags import desk
from repair.enums import PacketStatus
from workflows.enums import AttemptStatus, CommandStatus, Effect, RunStatus, StepStatus

NOW = datetime(2026, 9, 19, 17, 10, 56, tzinfo=UTC)


def shown(source: str, **context: object) -> str:
    return Template("{% load desk %}" + source).render(Context(context))


def visible(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@pytest.mark.parametrize(
    "text",
    [
        "Pay ⟦U+202E⟧00001⟦U+202C⟧ EUR",
        "<b onmouseover=alert(1)>Pay</b>",
        "Pay &lt;10&gt; &#x202e;EUR",
        "··pay··10·",
        "one↵\n↵\nthree ⇥ tab",
        "{{ request.user.password }} {% debug %}",
        "ok⟦U+E0068⟧⟦U+FFFFFF⟧⟦U+12⟧",
        "",
    ],
)
def test_exact_text_is_what_the_browser_shows(text: str) -> None:
    assert visible(desk.exact(text)) == text
    assert visible(desk.exact_lines(text)) == text


def test_exact_escapes_even_text_that_was_marked_safe() -> None:
    assert "<script>" not in desk.exact(mark_safe("<script>x</script>"))


def test_exact_names_a_hidden_character() -> None:
    assert '<span class="cp" title="RIGHT-TO-LEFT OVERRIDE">⟦U+202E⟧</span>' in desk.exact("a⟦U+202E⟧b")


def test_exact_lines_numbers_every_line() -> None:
    assert desk.exact_lines("a↵\nb↵\nc").count('class="ln"') == 3


def test_mark_has_one_bar_for_each_of_sixteen_digits() -> None:
    assert desk.mark("sha256:32e593fbc8dce5d2a085bb5d")["bars"][:3] == [(1, 4), (3, 3), (5, 15)]
    assert shown("{% mark d %}", d="32e593fbc8dce5d2a085").count("<path") == 16


def test_digest_stands_in_groups_of_four() -> None:
    assert "32e5 93fb c8dc e5d2" in desk.digest("32e593fbc8dce5d2a085bb5d")


def test_instant_says_utc_and_carries_its_iso_form() -> None:
    assert desk.instant(NOW) == (
        '<time datetime="2026-09-19T17:10:56Z" data-local="after">2026-09-19 17:10:56 UTC</time>'
    )
    assert desk.instant(None) == "–"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "now"),
        (5, "in 5 s"),
        (2472, "in 41 min"),
        (13200, "in 3 h 40"),
        (223_200, "in 2 days 14 h"),
        (-240, "4 min ago"),
    ],
)
def test_distances_are_said_as_people_say_them(seconds: int, said: str) -> None:
    assert spans.distance(NOW + timedelta(seconds=seconds), NOW) == said


@pytest.mark.parametrize(
    ("seconds", "left"), [(118, "1:58"), (2472, "41:12"), (13200, "3 h 40"), (-3, "0:00")]
)
def test_countdown_text(seconds: int, left: str) -> None:
    assert spans.clock_left(seconds) == left


def test_a_countdown_that_has_run_out_says_so() -> None:
    assert "Time is over" in shown("{% countdown until now %}", until=NOW, now=NOW)


def test_ring_shows_the_share_that_is_left() -> None:
    filled = spans.share(NOW - timedelta(hours=3), NOW + timedelta(hours=1), NOW)
    rendered = shown("{% ring tone filled %}", tone=spans.urgency(3600), filled=filled)
    assert 'stroke-dasharray="25 100"' in rendered


def test_every_state_has_a_tone_an_icon_of_the_sprite_and_a_word() -> None:
    sprite = shown('{% include "components/icons.html" %}')
    for thing, states in STATES.items():
        for state in states:
            ui = state_ui(thing, state)
            assert f'id="i-{ui.icon}"' in sprite, (thing, state)
            assert ui.word in shown("{% badge thing state %}", thing=thing, state=state)


@pytest.mark.parametrize(
    ("thing", "states"),
    [
        ("run", RunStatus),
        ("step", StepStatus),
        ("proposal", ProposalStatus),
        ("command", CommandStatus),
        ("attempt", AttemptStatus),
        ("packet", PacketStatus),
        ("mode", Mode),
        ("effect", Effect),
    ],
)
def test_the_table_of_states_is_the_enums_no_more_and_no_less(thing: str, states: type[TextChoices]) -> None:
    assert set(STATES[thing]) == set(states.values)


def test_unknown_is_never_shown_as_failed() -> None:
    assert {STATES[thing]["unknown"].tone for thing in ("run", "command", "effect")} == {"unknown"}
