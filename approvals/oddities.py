"""What a reviewer must say that they saw, found by comparing: with earlier actions, and one value with another.

Computed once, when the proposal is made, and stored in its view document, so that everybody is shown the same. Pure:
what is known of earlier actions comes in as `Known`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations, islice
from statistics import median
from typing import Final

from approvals.repeated import list_warnings
from approvals.traits import ACCOUNT, ADDRESS, AMOUNT, HOST, MOST, NAME, Seen
from approvals.viewmodels import ViewField, ViewList, ViewWarning
from common.display import unveil
from common.fields import SCALES, money_text
from common.hosts import fronts_of
from common.textlinks import links_in

ENOUGH: Final = 8
"""So many earlier amounts make a history that a new one is compared with."""
TIMES_MEDIAN: Final = 10
_NAMED: Final = 4
_PAIRED: Final = 40
"""So many values of one likeness are compared with each other."""


@dataclass(frozen=True, slots=True)
class Known:
    """What this tenant's earlier actions say, of those that have happened.

    ``here``: values used for this very target; ``anywhere``: used by this operation for any. ``here_by_kind`` counts
    the actions on the target that named a value of the kind. ``alike``: for a value, another one that reads like it,
    or the empty text where that may not be named.
    """

    here: frozenset[tuple[str, str]] = frozenset()
    anywhere: frozenset[tuple[str, str]] = frozenset()
    here_by_kind: Mapping[str, int] = field(default_factory=dict)
    alike: Mapping[tuple[str, str], str] = field(default_factory=dict)
    amounts: Mapping[tuple[str, str], Sequence[Decimal]] = field(default_factory=dict)
    """By place and currency."""
    other_currencies: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    """By place and currency: how many of the earlier amounts there were in which other currency."""


def oddities(
    fields: Sequence[ViewField], lists: Sequence[ViewList], seen: Sequence[Seen], known: Known, target: str
) -> tuple[ViewWarning, ...]:
    """Every warning that comes of comparing, each once for its field, or for the long list that its field is in.

    ``seen``: all comparable values; of these the first `MOST` were compared with earlier actions, as ``known`` says.
    """
    asked = seen[:MOST]
    found = [
        *link_warnings(fields),
        *gaps(fields),
        *first_ever(asked, known, target),
        *look_alikes(seen, known),
        *known_in_front(asked, known),
        *list_warnings(fields),
        *unusual_amounts(asked, known),
        *unusual_currencies(asked, known),
        *not_compared(seen),
    ]
    pages = {part: long for long in lists for part in long.parts}
    by_pointer = {row.pointer: pages[row.part] for row in fields if row.part in pages}
    return tuple(_said_once(_on_lists(found, by_pointer)))


def _on_lists(found: Iterable[ViewWarning], lists: Mapping[str, ViewList]) -> Iterator[ViewWarning]:
    for warning in found:
        long = lists.get(warning.pointer)
        if long is None:
            yield warning
        else:
            sentence = f"{warning.label}: {warning.sentence}"
            yield warning.model_copy(
                update={"pointer": long.pointer, "label": long.label, "sentence": sentence}
            )


def _said_once(found: Iterable[ViewWarning]) -> list[ViewWarning]:
    """Several of one kind about one place are one line, with the first few sentences and a count of the rest."""
    alike: dict[str, list[ViewWarning]] = {}
    for warning in found:
        alike.setdefault(warning.id, []).append(warning)
    return [_joined(warnings) for warnings in alike.values()]


def _joined(warnings: Sequence[ViewWarning]) -> ViewWarning:
    sentences = list(dict.fromkeys(warning.sentence for warning in warnings))
    more = len(sentences) - _NAMED
    told = sentences[:_NAMED] + ([f"And {more} more of this kind."] if more > 0 else [])
    return warnings[0].model_copy(update={"sentence": " ".join(told)})


def _warning(code: str, row: ViewField, sentence: str) -> ViewWarning:
    return ViewWarning(code=code, pointer=row.pointer, label=row.label, sentence=sentence, acknowledge=True)


def link_warnings(fields: Iterable[ViewField]) -> Iterator[ViewWarning]:
    """Links inside texts whose host is not what it seems."""
    for row in fields:
        for link in links_in(unveil(row.text)) if row.type == "text" and row.text else ():
            for trick in link.tricks:
                yield _warning(
                    trick.code, row, _told(row, trick.sentence, "A link in it is not what it seems.")
                )


_BLANK: Final = r"[\s\u2800\u3164\u115f\u1160\uffa0\u200b-\u200f\u2060\ufeff]"
_GAP: Final = re.compile(rf"(?<=\S){_BLANK}{{9,}}")
_RULED: Final = re.compile(r"(?<=\n)(?:[^\w\n]*\n){9,}")
"""Lines of dots, dashes and the like, in which nothing stands."""
_EMPTY_LINES, _SPACES = 8, 40
_TAIL: Final = 120


def gaps(fields: Iterable[ViewField]) -> Iterator[ViewWarning]:
    """Texts that seem to be over, and go on after so much white space that nobody looks there any more."""
    for row in fields:
        text = unveil(row.text) if row.type == "text" and row.text else ""
        gaps_in = (*_GAP.finditer(text), *_RULED.finditer(text))
        found = [
            match
            for match in gaps_in
            if text[: match.start()].strip() and text[match.end() :].strip() and _is_wide(match[0])
        ]
        if found:
            yield _warning(
                "text_after_gap", row, _told(row, _goes_on(text, found), "It goes on after a gap.")
            )


def _is_wide(gap: str) -> bool:
    lines = gap.count("\n")
    return lines > _EMPTY_LINES or len(gap) - lines >= _SPACES


def _goes_on(text: str, found: Sequence[re.Match[str]]) -> str:
    gap = found[0]
    lines = gap[0].count("\n") - 1
    words = "lines without a word" if gap[0].strip() else "empty lines"
    length = f"{lines:,} {words}" if lines >= _EMPTY_LINES else f"{len(gap[0]):,} spaces"
    rest = text[gap.end() : gap.end() + _TAIL]
    more = "…" if gap.end() + _TAIL < len(text) else ""
    return f"The text seems to be over, and goes on after {length}: “{' '.join(rest.split())}{more}”."


def _told(row: ViewField, sentence: str, without: str) -> str:
    """Checklists are read by roles that are not shown personal values: then the sentence does without them."""
    return sentence if row.data_class in ("public", "business") else without


def first_ever(seen: Iterable[Seen], known: Known, target: str) -> Iterator[ViewWarning]:
    """Accounts and hosts that no action on this target has used before."""
    for one in seen:
        key = (one.kind, one.value)
        if one.kind not in (ACCOUNT, ADDRESS, HOST) or key in known.here:
            continue
        before = known.here_by_kind.get(one.kind, 0)
        if one.kind == ACCOUNT or before or (one.kind == HOST and key not in known.anywhere):
            code = "first_host" if one.kind == HOST else "first_account"
            yield _warning(code, one.field, _first(one, before, key in known.anywhere, target))


def not_compared(seen: Sequence[Seen]) -> Iterator[ViewWarning]:
    """So many accounts or hosts that some were not compared with earlier actions: nobody should think that all were."""
    for kind, thing in ((ACCOUNT, "accounts"), (HOST, "hosts")):
        rest = [one for one in seen[MOST:] if one.kind == kind]
        if rest:
            of = sum(one.kind == kind for one in seen)
            asked = f"{of - len(rest):,} of the {of:,} {thing}"
            sentence = f"{asked} were compared with earlier actions, the rarest first; the others were not."
            yield _warning("not_compared", rest[0].field, sentence)


_THINGS: Final = {ACCOUNT: "account", ADDRESS: "address", HOST: "host"}


def _first(one: Seen, before: int, elsewhere: bool, target: str) -> str:
    thing = f"{_THINGS[one.kind].capitalize()} {one.shown}" if one.open else f"This {_THINGS[one.kind]}"
    if before:
        earlier = "the one earlier action" if before == 1 else f"the {before} earlier actions"
        return f"{thing} was never used for {target}: {earlier} on it named another one."
    if elsewhere:
        return f"{thing} was never used for {target}, only for others."
    return f"{thing} was never used before, for {target} or for any other."


def look_alikes(seen: Sequence[Seen], known: Known) -> Iterator[ViewWarning]:
    """Values that read like another one: of an earlier action, or of this very proposal."""
    for one in seen:
        other = known.alike.get((one.kind, one.value))
        if other is not None:
            yield _alike(
                one, f"{other}, which was used before" if other and one.open else "one that was used before"
            )
    for kind in (HOST, ACCOUNT, ADDRESS, NAME):
        mine = {one.value: one for one in seen if one.kind == kind}
        for first, second in _pairs_alike(list(mine.values()), one_letter=kind == HOST):
            named = second.shown if first.open and second.open else f"that of {second.field.label}"
            yield _alike(first, f"{named}, which stands here too")


def known_in_front(seen: Iterable[Seen], known: Known) -> Iterator[ViewWarning]:
    """Hosts that begin like a known one, whatever its ending, and belong to somebody else."""
    hosts = {one.value for one in seen if one.kind == HOST} | {
        value for kind, value in known.anywhere if kind == HOST
    }
    for one in seen:
        front = next((name for name in fronts_of(one.value) if name in hosts), "") if one.kind == HOST else ""
        if front:
            says = (
                f"{one.shown} begins like {front}, and is another one."
                if one.open
                else "It begins like another."
            )
            yield _warning("host_in_front", one.field, says)


def _pairs_alike(values: Sequence[Seen], *, one_letter: bool) -> Iterator[tuple[Seen, Seen]]:
    """Pairs of one likeness, or of hosts that differ in a letter. Nine thousand values are not compared in pairs."""
    by_likeness: dict[str, list[Seen]] = {}
    for one in values:
        by_likeness.setdefault(one.alike, []).append(one)
    for group in by_likeness.values():
        yield from combinations(group[:_PAIRED], 2)
    if one_letter:
        yield from islice(_pairs_by_letter(values), _PAIRED)


def _pairs_by_letter(values: Sequence[Seen]) -> Iterator[tuple[Seen, Seen]]:
    """Two names that differ in a letter have a shape in common: each as it is, or without one of its letters."""
    by_shape: dict[str, list[Seen]] = {}
    for one in values:
        for shape in {one.value, *(one.value[:at] + one.value[at + 1 :] for at in range(len(one.value)))}:
            by_shape.setdefault(shape, []).append(one)
    told = set()
    for group in by_shape.values():
        for first, second in combinations(group[:_PAIRED], 2):
            pair = (first.value, second.value)
            if pair not in told and _one_letter(first, second) and first.alike != second.alike:
                told.add(pair)
                yield first, second


def _alike(one: Seen, other: str) -> ViewWarning:
    code = "lookalike_host" if one.kind == HOST else "lookalike_value"
    thing = one.shown if one.open else "It"
    return _warning(code, one.field, f"{thing} reads like {other}, and is another one.")


def _one_letter(first: Seen, second: Seen) -> bool:
    """Whether one letter more, less or other makes two long host names: harbour-lane and harbor-lane."""
    one, other = sorted((first.value, second.value), key=len)
    if len(one) < 8 or len(other) - len(one) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if other[start].isdigit() and (len(one) != len(other) or one[start].isdigit()):
        return False  # eu1 and eu2, shop and shop2: people number their hosts
    return (
        one[start + 1 :] == other[start + 1 :]
        if len(one) == len(other)
        else one[start:] == other[start + 1 :]
    )


def unusual_amounts(seen: Iterable[Seen], known: Known) -> Iterator[ViewWarning]:
    """Amounts above all earlier ones, or far above the middle one, once there are enough to compare with."""
    for one in seen:
        earlier = known.amounts.get((one.place, one.currency), ()) if one.kind == AMOUNT else ()
        if one.amount is None or len(earlier) < ENOUGH:
            continue
        most, middle = max(earlier), median(earlier)
        if one.amount > most or (middle > 0 and one.amount >= TIMES_MEDIAN * middle):
            yield _warning("amount_unusual", one.field, _amount_says(one, len(earlier), most, middle))


def unusual_currencies(seen: Iterable[Seen], known: Known) -> Iterator[ViewWarning]:
    """An amount in a currency that this place never had, once enough others were made: it is compared with none."""
    for one in seen:
        place = (one.place, one.currency)
        others = known.other_currencies.get(place, {}) if one.kind == AMOUNT else {}
        if not known.amounts.get(place) and sum(others.values()) >= ENOUGH:
            names = " and ".join(sorted(others))
            sentence = f"The last {sum(others.values())} that were made were in {names}. This one is in {one.currency}."
            yield _warning("currency_unusual", one.field, sentence)


def _amount_says(one: Seen, count: int, most: Decimal, middle: Decimal) -> str:
    def money(amount: Decimal) -> str:
        return money_text(f"{amount:.{SCALES.get(one.currency, 2)}f}", one.currency)

    times = (
        f", {one.amount / middle:.1f} times the middle one" if one.amount is not None and middle > 0 else ""
    )
    above = "above" if one.amount is not None and one.amount > most else "not above"
    return (
        f"Of the last {count} that were made, the largest was {money(most)} and the middle one {money(middle)}."
        f" This one is {above} the largest{times}."
    )
