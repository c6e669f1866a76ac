"""The checklist: what rules found when the proposal was made, to be ticked as seen; and what keeps Approve closed."""

import re
from dataclasses import dataclass
from typing import Final

from approvals.screens.slip import Left, Slip
from approvals.viewmodels import ViewDocument, ViewWarning

# What is odd, in the two or three words that end a line of the checklist.
CALLS: Final = {
    "bidi_control": "reversed reading order",
    "invisible": "hidden characters",
    "tag_chars": "hidden message",
    "variation_selector": "hidden bytes",
    "blank_letter": "blank letters",
    "nonascii_space": "unusual spaces",
    "line_sep": "unusual line ends",
    "control": "control characters",
    "ansi_escape": "terminal commands",
    "private_use": "private-use characters",
    "unassigned": "unknown characters",
    "mixed_script": "look-alike letters",
    "stacked_marks": "stacked marks",
    "lookalike_word": "look-alike letters",
    "odd_digits": "unusual digits",
    "letters_in_number": "a letter in a number",
    "rtl_numbers": "numbers in another order",
    "overlay_marks": "letters struck through",
    "text_after_gap": "goes on further down",
    "host_in_front": "another host than it seems",
    "idn_host": "letters beyond ASCII",
    "lookalike_host": "looks like another host",
    "lookalike_value": "looks like another value",
    "first_account": "never used before",
    "first_host": "never seen before",
    "amount_unusual": "unusual amount",
    "currency_unusual": "unusual currency",
    "not_compared": "compared in part",
    "link_userinfo": "another host than it seems",
    "link_other_host": "another host than it seems",
    "link_ip_literal": "a bare IP address",
    "link_trailing_dot": "a host with a dot at its end",
    "link_host_encoding": "a disguised host",
    "link_carries_another": "a link inside a link",
    "mail_local_host": "another host than it seems",
    "file_runs": "a file that runs",
    "file_path": "a path, not a name",
    "value_repeated": "there more than once",
    "amount_stands_out": "far above the others",
    "link_scheme": "a link that runs something",
    "link_no_host": "no host at all",
    "evidence_contradicts": "evidence says otherwise",
    "evidence_names_others": "evidence names others",
    "evidence_disagrees": "evidence disagrees",
    "evidence_ambiguous": "evidence says two things",
    "evidence_repeated": "the same piece again",
    "evidence_ahead": "a time to come",
    "evidence_stale": "past its limit",
    "same_thing_in_progress": "under way already",
}
_EVIDENCE: Final = re.compile(r"E([1-9][0-9]*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist: what a rule found, to be ticked as seen. ``field``: the HTML id of its place."""

    code: str
    name: str
    call: str
    why: str
    field: str
    seen: bool
    number: int

    @property
    def id(self) -> str:
        """The HTML id of the line itself."""
        return f"check-{self.number}"

    @property
    def shows(self) -> str:
        """The words of the link to the place."""
        return "Show the evidence" if _EVIDENCE.fullmatch(self.field.upper()) else "Show the field"


def check_rows(view: ViewDocument, acknowledged: frozenset[str]) -> tuple[Check, ...]:
    """The warnings that must be acknowledged, each once, in the document's order."""
    rows: dict[str, Check] = {}
    for warning in view.warnings:
        if warning.acknowledge and warning.id not in rows:
            rows[warning.id] = Check(
                code=warning.id,
                name=warning.label,
                call=CALLS.get(warning.code, warning.code.replace("_", " ")),
                why=warning.sentence,
                field=_place_of(view, warning),
                seen=warning.id in acknowledged,
                number=len(rows) + 1,
            )
    return tuple(rows.values())


def _place_of(view: ViewDocument, warning: ViewWarning) -> str:
    """The HTML id of what a warning is about; empty where it is about the whole."""
    if found := _EVIDENCE.fullmatch(warning.pointer):
        return f"e{found[1]}"
    field = next((field for field in view.fields if field.pointer == warning.pointer), None)
    on_page = next((long for long in view.lists if field and field.part in long.parts), None)
    named = next((long for long in view.lists if long.pointer == warning.pointer), None)
    shown = named or on_page or field
    return shown.id if shown else ""


def what_is_left(slip: Slip, checks: tuple[Check, ...]) -> tuple[Left, ...]:
    """What keeps Approve closed, each thing with its name and place."""
    ticks = (Left(check.name, check.call, f"#{check.id}") for check in checks if not check.seen)
    return (*ticks, *slip.left_parts())
