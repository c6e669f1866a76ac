"""Template tags of the desk: badges, digests, exact values, instants.

Every tag escapes what it is given: markup is built by ``format_html`` or by a template, never by joining
strings. Exact values come in already rendered for people (hidden characters as ⟦U+XXXX⟧, line ends as ↵,
tabs as ⇥, edge and doubled spaces as ·); the tags only wrap these signs, so that the text a browser shows
is, character for character, the text that was stored.
"""

import re
from copy import copy
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.http import HttpRequest
from django.urls import resolve
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from common import display, spans
from common.display import Piece
from common.states_ui import StateUi, Tone, state_ui

register = template.Library()

DIGEST_BARS = 16


@register.simple_tag
@cache  # their names are a few of ours, and a page has a hundred of them
def icon(name: str) -> SafeString:
    """Return the icon ``name`` of the sprite, hidden from screen readers: a word always stands beside it."""
    return format_html('<svg class="i" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.inclusion_tag("components/badge.html")
def badge(thing: str, state: str, note: str = "") -> dict[str, object]:
    """Show the state of a thing (``run``, ``proposal``, …) by the one table; ``note`` follows its word."""
    return {"ui": state_ui(thing, state), "note": note}


@register.inclusion_tag("components/badge.html")
def label(tone: Tone, icon_name: str, word: str) -> dict[str, object]:
    """Show a badge that is no state of a thing, such as "1 of 2 given"."""
    return {"ui": StateUi(tone, icon_name, word), "note": ""}


@register.simple_tag
def state_word(thing: str, state: str) -> str:
    """Return the word of a state for running text."""
    return state_ui(thing, state).word


@register.simple_tag
def state_tone(thing: str, state: str) -> Tone:
    """Return the tone of a state, for a ``data-tone`` attribute."""
    return state_ui(thing, state).tone


@register.simple_tag
def state_icon(thing: str, state: str) -> SafeString:
    """Return the icon of a state."""
    return icon(state_ui(thing, state).icon)


def digest_hex(value: str) -> str:
    """Return the hex digits of a digest without the name of its algorithm."""
    return str(value).rpartition(":")[2]


@register.inclusion_tag("components/mark.html")
def mark(value: str) -> dict[str, object]:
    """Show a digest as 16 bars, one for each of its first 16 hex digits; equal digests look equal."""
    digits = [int(digit, 16) for digit in digest_hex(value)[:DIGEST_BARS]]
    return {"bars": [(1 + 2 * place, digit + 1) for place, digit in enumerate(digits)]}


@register.simple_tag
def digest(value: str) -> SafeString:
    """Return the first 16 hex digits of a digest in groups of four, as people compare them."""
    short = digest_hex(value)[:DIGEST_BARS]
    groups = " ".join(short[start : start + 4] for start in range(0, len(short), 4))
    return format_html('<span class="hash" translate="no">{}</span>', groups)


@register.filter
def grouped(value: int) -> str:
    """Return a count as people read it: 9,000."""
    return f"{value:,}"


@register.filter
def short_id(value: object) -> str:
    """Return an id or a digest as its first eight and last four digits, for lists and links."""
    text = str(value)
    return text if len(text) <= 14 else f"{text[:8]}…{text[-4:]}"


def piece_html(piece: Piece) -> SafeString:
    """Wrap one run of rendered text: a code point with its name as title, a visible space, an odd letter."""
    if piece.kind == "cp":
        return format_html('<span class="cp" title="{}">{}</span>', piece.title, piece.text)
    if piece.kind == "ws":
        return format_html('<span class="ws">{}</span>', piece.text)
    if piece.kind == "odd":
        return format_html('<mark class="odd" title="{}">{}</mark>', piece.title, piece.text)
    return format_html("{}", piece.text)


@register.filter
def exact(value: object) -> SafeString:
    """Return rendered text for the page: escaped, with its signs wrapped and not one character changed."""
    # Only plain text is escaped on the way: a SafeString is turned back into one.
    text = "".join(str(value))
    if text.isascii():  # none of the signs is, and no letter among others of its script is odd
        return format_html("{}", text)
    return format_html_join("", "{}", ((piece_html(piece),) for piece in display.pieces(text)))


@register.filter
def exact_lines(value: object) -> SafeString:
    """Return rendered text as :func:`exact`, each line in a span of its own, which the page numbers."""
    # Only the line feed ends a line: every other separator is shown as a code point.
    lines = re.findall(r"[^\n]*\n|[^\n]+", str(value))
    return format_html_join("", '<span class="ln">{}</span>', ((exact(line),) for line in lines))


@register.simple_tag
def instant(value: datetime | None, local: str = "") -> SafeString:
    """Return an instant as UTC text that a script may put into the reader's zone.

    With ``local="first"`` the local time takes the first place and UTC follows in brackets, for lists and
    for places where a person waits. Without it UTC stays first, as on the slip. None gives a dash.
    """
    if value is None:
        return format_html("{}", "–")
    return format_html(
        '<time datetime="{}" data-local="{}">{}</time>',
        spans.iso(value),
        local or "after",
        spans.utc_text(value),
    )


@register.filter
def distance(value: datetime | None, now: datetime) -> str:
    """Return how far an instant is from the server's ``now``: "in 41 min", "4 min ago"."""
    return "" if value is None else spans.distance(value, now)


@register.filter
def span(value: float) -> str:
    """Return a length of time in seconds as people say it."""
    return spans.span(float(value))


@register.inclusion_tag("components/countdown.html")
def countdown(until: datetime, now: datetime, since: datetime | None = None) -> dict[str, object]:
    """Show the time left until a deadline, by the server's clock; the page's script makes it tick."""
    return {**ring_context(until, now, since), "until": until, "since": since}


@register.simple_tag
def ring(tone: Tone, filled: int) -> SafeString:
    """Return the ring alone: how much of the time is left, in percent."""
    return format_html(
        '<svg class="ring" viewBox="0 0 20 20" data-tone="{}" aria-hidden="true"><circle cx="10" cy="10" r="8"/>'
        '<circle cx="10" cy="10" r="8" pathLength="100" stroke-dasharray="{} 100"/></svg>',
        tone,
        filled,
    )


def ring_context(until: datetime, now: datetime, since: datetime | None) -> dict[str, Any]:
    """Return tone, filled share and words for the time left."""
    left = (until - now).total_seconds()
    filled = 100 if since is None else spans.share(since, until, now)
    return {"tone": spans.urgency(left), "filled": filled, "left": spans.clock_left(left), "over": left <= 0}


@register.simple_tag
def time_left(until: datetime, now: datetime) -> str:
    """Return the time left in words for a row, in whole days from a day on; "over" once it is."""
    return spans.left((until - now).total_seconds())


@register.simple_tag
def time_tone(until: datetime, now: datetime) -> Tone:
    """Return the tone of the time left."""
    return spans.urgency((until - now).total_seconds())


@register.filter
def iso(value: datetime) -> str:
    """Return an instant as ISO 8601 in UTC."""
    return spans.iso(value)


@register.filter
def initials(name: str) -> str:
    """Return the first letters of the first two words of a name, for the account button."""
    return "".join(word[0] for word in str(name).replace(".", " ").replace("_", " ").split()[:2]).upper()


@register.simple_tag(takes_context=True)
def part(context: template.Context, url: str) -> SafeString:
    """Include the fragment that another part of the product serves at ``url``, rendered for the same request.

    So one app's page can show what another app knows, without importing it. The fragment is the output of
    our own template and is taken over as it is; an answer other than 200 gives nothing.
    """
    # The fragment is read, also when the page around it answers a POST.
    request: HttpRequest = copy(context["request"])
    request.method = "GET"
    match = resolve(url)
    response = match.func(request, *match.args, **match.kwargs)
    return SafeString(response.content.decode() if response.status_code == 200 else "")
