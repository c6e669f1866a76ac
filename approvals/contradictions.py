"""What evidence says about the arguments, as far as code can tell: labelled lines and members that name one of them.

A piece states a value where its line reads *label: value*, or its JSON object has a member of that name, and label or
name is that of an argument. Of prose only amounts of money are read: where a piece names some, and never the one that
is signed, in a message, a letter, an invoice and the like. What else it says, people judge. Pure.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from approvals.traits import ACCOUNTS
from approvals.viewmodels import ViewField, ViewWarning
from common import spans
from common.disclosure import is_open
from common.display import hidden_kind, visible
from common.fields import SCALES, IbanType, MoneyType
from common.strictjson import JsonRefused, Limits, parse

_LINE: Final = re.compile(
    r"(?:[>*•|-]\s*)*([A-Za-z][A-Za-z0-9 _-]{0,60}?)[*_]{0,2}\s*[:=]\s*[*_]{0,2}\s*(\S.{0,300}?)[*_|\s]*"
)
_SIGNS: Final = {"€": "EUR", "£": "GBP", "$": "", "¥": ""}
"""What a sign before or behind a number says; a dollar is that of many countries."""
_NUMBER: Final = r"-?(?:[0-9]{1,3}(?:[.,'’ ][0-9]{3})+|[0-9]+)(?:[.,][0-9]+)?"
_MONEY: Final = re.compile(rf"(?:([A-Z]{{3}}|[€£$¥]) ?)?({_NUMBER})(?: ?([A-Z]{{3}}|[€£$¥]))?")
_IN_PROSE: Final = re.compile(
    rf"(?<![\w.,-])(?:([A-Z]{{3}}|[€£]) ?({_NUMBER})|({_NUMBER}) ?([A-Z]{{3}}|[€£]))(?![\w-])(?![.,][0-9])"
)
_CURRENCY: Final = re.compile(r"[A-Z]{3}", re.ASCII)
_READ: Final = 65_536
_NOTHING: Final = frozenset({"none", "null", "nothing", "unknown", "n/a", "-", "–"})
"""What people and programs write where there is no value: it states none."""
_Money = tuple[frozenset[Decimal], str]
"""Every amount that a text can be read as, and its currency where it names one."""
_WRITTEN: Final = frozenset(
    {"message", "mail", "email", "letter", "chat", "note", "ticket", "transcript", "invoice"}
)
"""The kinds of evidence that are somebody's words about this one case."""
_BOM: Final = b"\xef\xbb\xbf"
_SMALL: Final = Limits(max_bytes=_READ)
_TITLE: Final = re.compile(r"\w[\w' -]{0,39}", re.ASCII)
_AHEAD: Final = timedelta(minutes=5)
"""So much may clocks differ before evidence is said to come from the future."""
_IBANS: Final = re.compile(r"(?<![A-Z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}(?![A-Z0-9])")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of evidence as it is compared. ``number`` from 1, as on the page."""

    number: int
    title: str
    data_class: str
    content: bytes
    ref: str
    captured_at: datetime
    fresh_until: datetime | None
    kind: str = ""

    @property
    def name(self) -> str:
        """Its number, and its title where that is one: whoever proposes writes it, and these are our sentences."""
        return f"E{self.number} ({self.title})" if _TITLE.fullmatch(self.title) else f"E{self.number}"


def evidence_warnings(
    fields: Sequence[ViewField], pieces: Sequence[Piece], now: datetime
) -> tuple[ViewWarning, ...]:
    """Where evidence and arguments differ, where two pieces do, and what is past its limit already."""
    said = {piece.number: statements(piece.content) for piece in pieces}
    return (
        *_against_arguments(fields, pieces, said),
        *_among_themselves(fields, pieces, said),
        *_never_named(fields, pieces),
        *_other_accounts(fields, pieces),
        *_stale(pieces, now),
        *_ahead(pieces, now),
        *_said_twice(pieces),
        *_not_one_document(pieces),
    )


def statements(content: bytes) -> dict[str, tuple[str, ...]]:
    """What a piece states, by label in one spelling: every value that it gives, for it may contradict itself.

    Only its own lines and members count, not what is nested.
    """
    text = _plain(content)
    if text.startswith("{"):
        return _members(content)
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line.rstrip())
        if match and match[2].strip().casefold() not in _NOTHING:
            found.setdefault(_spelled(match[1]), []).append(match[2].strip())
    return {label: tuple(dict.fromkeys(values)) for label, values in found.items()}


def _plain(content: bytes) -> str:
    """The beginning of a piece with its digits as 0 to 9, whatever script they are of."""
    text = content[:_READ].decode(errors="replace").lstrip("\ufeff \t\r\n")
    return text if text.isascii() else _in_plain_digits(text)


def _in_plain_digits(text: str) -> str:
    return "".join(
        str(int(c)) if c.isdecimal() else c for c in text if not hidden_kind(c) or c in "\xa0\u202f"
    )


def _members(content: bytes) -> dict[str, tuple[str, ...]]:
    """Every value by name; names that differ in case or width are one, and each of their values counts."""
    try:
        value = parse(content.removeprefix(_BOM).strip(), _SMALL)
    except JsonRefused:
        return {}
    found: dict[str, list[str]] = {}
    for name, part in value.items() if isinstance(value, dict) else ():
        if _states(part):
            found.setdefault(_spelled(name), []).append(_in_plain_digits(str(part)))
    return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}


def _states(part: object) -> bool:
    """Whether a member is a value that can be compared; yes, no and nothing are none."""
    if isinstance(part, str):
        return bool(part.strip()) and part.strip().casefold() not in _NOTHING
    return isinstance(part, int | float) and not isinstance(part, bool)


def _spelled(label: str) -> str:
    return re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", label)).strip().casefold()


def _names_of(field: ViewField) -> set[str]:
    """What evidence may call an argument: by its name, or by its label."""
    return {_spelled(str(field.path[-1])), _spelled(field.label)} if len(field.path) == 1 else set()


def _against_arguments(
    fields: Iterable[ViewField], pieces: Sequence[Piece], said: Mapping[int, Mapping[str, Sequence[str]]]
) -> Iterator[ViewWarning]:
    for field in fields:
        for piece in pieces:
            for name, values in said[piece.number].items():
                yield from (
                    _contradicts(field, piece, stated)
                    for stated in values
                    if (name in _names_of(field) and differs(field.type, stated, field.text or ""))
                    or (name in field.covers and _other_currency(stated, field.text or ""))
                )


def _other_currency(stated: str, shown: str) -> bool:
    return bool(_CURRENCY.fullmatch(stated)) and not shown.startswith(stated)


def _contradicts(field: ViewField, piece: Piece, stated: str) -> ViewWarning:
    words = "says something else"
    if is_open(field.data_class) and is_open(piece.data_class):
        words = f"says {visible(stated)}, and what you sign says {field.text}"
    return ViewWarning(
        code="evidence_contradicts", pointer=field.pointer, label=field.label, acknowledge=True,
        sentence=f"{piece.name} {words}.",
    )  # fmt: skip


def _among_themselves(
    fields: Sequence[ViewField], pieces: Sequence[Piece], said: Mapping[int, Mapping[str, Sequence[str]]]
) -> Iterator[ViewWarning]:
    """Two pieces that state different values of one argument, or of one record."""
    names = {name: field for field in fields for name in _names_of(field)}
    for at, first in enumerate(pieces):
        for second in pieces[at + 1 :]:
            same_record = bool(first.ref) and first.ref == second.ref
            for name in said[first.number].keys() & said[second.number].keys():
                field = names.get(name)
                kind = field.type if field else "money"
                both = (
                    (one, other) for one in said[first.number][name] for other in said[second.number][name]
                )
                apart = next(((one, other) for one, other in both if differs(kind, one, other)), None)
                if apart and (field or same_record):
                    yield _disagree(first, second, name, *apart)


def _never_named(fields: Iterable[ViewField], pieces: Sequence[Piece]) -> Iterator[ViewWarning]:
    """Prose that names amounts in the currency of an argument, and never the argument's own."""
    for field in fields:
        if field.type != MoneyType.name or not field.covers or not (signed := _money(field.text or "")):
            continue
        for piece in pieces:
            named = _amounts_in(piece)
            same = [text for text, money in named if money[1] == signed[1]]
            if same and all(_money_differs(money, signed) for _, money in named):
                yield _names_others(field, piece, same)


def _amounts_in(piece: Piece) -> list[tuple[str, _Money]]:
    """The amounts with a currency in what somebody wrote about this case; rules and records name others as well."""
    if piece.kind not in _WRITTEN:
        return []
    text = _plain(piece.content)
    found = {match[0]: _money(match[0]) for match in _IN_PROSE.finditer(text)}
    return [(shown, money) for shown, money in found.items() if money and money[1] in SCALES]


def _names_others(field: ViewField, piece: Piece, named: Sequence[str], what: str = "amounts") -> ViewWarning:
    words = f"names other {what}, and never this one"
    if is_open(field.data_class) and is_open(piece.data_class):
        few = ", ".join(visible(text) for text in named[:3])
        words = f"names {few}{' and more' if len(named) > 3 else ''}, and never {field.text}"
    return ViewWarning(
        code="evidence_names_others", pointer=field.pointer, label=field.label, acknowledge=True,
        sentence=f"{piece.name} {words}.",
    )  # fmt: skip


def _disagree(first: Piece, second: Piece, name: str, one: str, other: str) -> ViewWarning:
    words = "say different things"
    if is_open(first.data_class) and is_open(second.data_class):
        words = f"say {visible(one)} and {visible(other)}"
    return ViewWarning(
        code="evidence_disagrees", pointer=f"E{second.number}", label=f"Evidence: {visible(name)}", acknowledge=True,
        sentence=f"{first.name} and {second.name} {words}.",
    )  # fmt: skip


def differs(kind: str, one: str, other: str) -> bool:
    """Whether two texts name different values of a type. False where either cannot be read for sure."""
    if kind == MoneyType.name:
        return _money_differs(_money(one), _money(other))
    if kind in ACCOUNTS:
        return _bare(one) != _bare(other)
    if kind in ("email", "url", "host"):
        return one.strip().casefold().rstrip("/") != other.strip().casefold().rstrip("/")
    if kind == "identifier":
        # A record is called by its number here, and by kind and number there.
        return not (one.endswith(other) or other.endswith(one))
    return kind == "currency" and bool(_CURRENCY.fullmatch(one)) and one != other


def _bare(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", text).upper()


def _money(text: str) -> _Money | None:
    """Every amount that a text can be read as, and its currency where it names one: 1.000 is one, or a thousand."""
    found = _MONEY.fullmatch(text.strip())
    if found is None:
        return None
    sign = found[1] or found[3] or ""
    return _readings(found[2]), _SIGNS.get(sign, sign)


def _readings(number: str) -> frozenset[Decimal]:
    plain = re.sub(r"['’ ]", "", number)
    last = max(plain.rfind("."), plain.rfind(","))
    if last < 0:
        return frozenset({Decimal(plain)})
    whole, fraction = re.sub("[.,]", "", plain[:last]), plain[last + 1 :]
    grouped = len(fraction) == 3 and plain.count(plain[last]) == len(re.findall("[.,]", plain))
    read = {Decimal(f"{whole}{fraction}")} if grouped else set()
    if plain.count(plain[last]) == 1 and not (grouped and plain[last] == ","):
        read.add(Decimal(f"{whole}.{fraction}"))
    return frozenset(read or {Decimal(f"{whole}{fraction}")})


def _money_differs(one: _Money | None, other: _Money | None) -> bool:
    if one is None or other is None:
        return False
    currencies = {currency for _, currency in (one, other) if currency}
    return not one[0] & other[0] or len(currencies) > 1


def _stale(pieces: Iterable[Piece], now: datetime) -> Iterator[ViewWarning]:
    for piece in pieces:
        if piece.fresh_until is not None and piece.fresh_until <= now:
            age = spans.span((now - piece.captured_at).total_seconds())
            limit = spans.span((piece.fresh_until - piece.captured_at).total_seconds())
            yield ViewWarning(
                code="evidence_stale", pointer=f"E{piece.number}", label=f"Evidence {piece.name}",
                acknowledge=True, sentence=f"It was read {age} before this was proposed; its limit is {limit}.",
            )  # fmt: skip


def _about(piece: Piece, code: str, sentence: str) -> ViewWarning:
    return ViewWarning(
        code=code, pointer=f"E{piece.number}", label=f"Evidence {piece.name}", acknowledge=True, sentence=sentence
    )  # fmt: skip


def _ahead(pieces: Iterable[Piece], now: datetime) -> Iterator[ViewWarning]:
    """A time of reading that is still to come: such a piece would never be past its limit."""
    for piece in pieces:
        if piece.captured_at > now + _AHEAD:
            ahead = spans.span((piece.captured_at - now).total_seconds())
            yield _about(piece, "evidence_ahead", f"It is said to be read {ahead} after this was proposed.")


def _said_twice(pieces: Sequence[Piece]) -> Iterator[ViewWarning]:
    """Pieces with the same content: two of them are worth no more than one."""
    first: dict[bytes, Piece] = {}
    for piece in pieces:
        content = b" ".join(piece.content.split())
        earlier = first.setdefault(content, piece) if content else piece
        if earlier is not piece:
            yield _about(piece, "evidence_repeated", f"It holds the very same as {earlier.name}.")


def _not_one_document(pieces: Iterable[Piece]) -> Iterator[ViewWarning]:
    """JSON that says two things under one name: programs take the first or the last, and it was compared with none."""
    for piece in pieces:
        content = piece.content[:_READ].removeprefix(_BOM).strip()
        try:
            if content.startswith(b"{"):
                parse(content, _SMALL)
        except JsonRefused as refused:
            if refused.code == "duplicate_key":
                says = "It says two things under one name, and programs differ in which of them they take."
                yield _about(piece, "evidence_ambiguous", says)


def _other_accounts(fields: Iterable[ViewField], pieces: Sequence[Piece]) -> Iterator[ViewWarning]:
    """Prose that names bank accounts, and never the one that is signed."""
    for field in fields:
        for piece in pieces if field.type == IbanType.name and field.text else ():
            named = _ibans_in(piece)
            if named and _bare(field.text or "") not in named:
                yield _names_others(field, piece, named, "accounts")


def _ibans_in(piece: Piece) -> tuple[str, ...]:
    """The bank accounts that a piece names. Capitals behind one may be read as part of it: cut until it fits."""
    if piece.kind not in _WRITTEN:
        return ()
    found = (_whole_iban(_bare(match[0])) for match in _IBANS.finditer(_plain(piece.content)))
    return tuple(dict.fromkeys(iban for iban in found if iban))


def _whole_iban(text: str) -> str:
    for length in range(len(text), 14, -1):
        try:
            return IbanType().normalize(text[:length])
        except ValueError:
            continue
    return ""
