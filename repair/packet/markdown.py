"""The document as Markdown that people paste into a ticket. Texts from outside mean nothing in it.

Each value stands in a code span of its own, with no sign in it that could end the span: no link, picture, heading or
HTML comes out of what somebody else wrote.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Document = Mapping[str, Any]
_FACTS: Final = (
    ("What stopped it", ("packet", "cause_words")), ("Packet", ("packet", "id")), ("State", ("packet", "status")),
    ("Owner", ("packet", "owner")), ("Opened", ("packet", "opened_at")), ("Until", ("packet", "until")),
    ("Then", ("packet", "on_expiry")), ("How it ended", ("packet", "how_it_ended")),
    ("Workflow", ("workflow", "name")), ("Workflow version", ("workflow", "version")), ("Run", ("run", "id")),
    ("Run state", ("run", "status")), ("Step", ("step", "key")), ("Step state", ("step", "status")),
    ("Error class", ("error", "class")), ("Error code", ("error", "code")),
)  # fmt: skip
_LISTS: Final = (
    ("What was attempted", ("command", "attempts")), ("Look-ups", ("command", "lookups")),
    ("What people said", ("command", "attestations")), ("Votes", ("approval", "votes")),
    ("Other orders on the record", ("record", "same_record")),
    ("Other orders for the same business key", ("record", "same_key")), ("Evidence", ("action", "evidence")),
    ("After the effect", ("after_effects",)),
    ("Similar packets: the same operation and cause", ("similar",)), ("History of the run", ("history",)),
)  # fmt: skip
_HAPPENED: Final = {
    "none": "no: nothing happened by this order", "happened": "yes", "partial": "in part", "unknown": "nobody knows",
    "none late": "a late answer says yes, after it was settled as no",
    "happened late": "yes, and by a late answer once more", "partial late": "in part, and by a late answer once more",
}  # fmt: skip
_MEANS: Final = (
    ("order", "what a worker is told to send to the provider, once; the customer's order is a *record* here"),
    ("key", "the idempotency key: what the provider knows this action by, however often it is sent"),
    ("business key", "what must not happen twice, whoever asks for it, such as the refund of one order"),
    ("pin", "the version of a record when the reviewer saw it; with another version by now nothing is sent"),
    (
        "void",
        "a check before sending failed; *dead*: given up; *refused*: the provider said no; of each nothing happened",
    ),
    ("released", "a try that ended before anything was sent; *claimed*: a worker has taken it"),
    (
        "contract and view",
        "what was approved, byte for byte, and the page that showed it; each has its digest",
    ),
    ("asserted", "evidence that an outside program gave and nobody checked"),
    (
        "fingerprint",
        "stands for a personal value, the same for the same value; on the page it is shown to who may see it",
    ),
)
_ORDER: Final = (
    "id", "status", "effect", "tries", "first_sent_at", "last_sent_at", "provider_reference", "failure_code",
    "void_reason", "settled_by", "ended_at",
)  # fmt: skip


def markdown(document: Document) -> str:
    """The whole document in a fixed order; parts that are not there are left out."""
    return "\n".join(_lines(document)) + "\n"


def code(value: object) -> str:
    """A value in a code span. A backtick would end it, and a line end its line: both are shown as what they are."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(text.replace("`", "ˋ").replace("|", "¦").splitlines())
    return f"` {flat} `" if flat else "–"


def _lines(document: Document) -> Iterator[str]:
    """What somebody needs at night comes first: what it was, whether it happened, what to do. Then what says so."""
    yield "# Repair packet"
    yield ""
    yield code(document["sentence"])
    yield ""
    yield f"As it stood at {code(document['made_at'])}. What has moved since stands on its page: look there first."
    yield ""
    yield from _table(
        ("What", "Value"), [*_answers(document), *((name, _at(document, path)) for name, path in _FACTS)]
    )
    yield from _action(document)
    yield from _possible(document)
    yield from _choices(document["choices"])
    yield from _runbook(document["runbook"])
    yield from _points("What is known", document["known"])
    yield from _points("What is not known", document["not_known"])
    yield from _orders(document)
    yield from _pins(document)
    if document["in_common"]:
        yield from _heading("What the similar packets have in common")
        yield code(document["in_common"])
    for title, path in _LISTS:
        yield from _rows(title, _at(document, path))
    yield from _words()
    yield ""
    yield f"Format {code(document['format'])}."


def _answers(document: Document) -> list[tuple[str, str]]:
    """What is asked first: whether it happened, and what the requester believes."""
    effect, late = _at(document, ("command", "effect")), _at(document, ("command", "late_reference"))
    if late:
        effect = f"{effect} late"
    told = _at(document, ("told", "message"))
    return [
        ("Has it happened", _HAPPENED.get(effect, "no: nothing was sent")),
        ("Requester was told", told or "nothing yet"),
    ]  # fmt: skip


def _pins(document: Document) -> Iterator[str]:
    pins = _at(document, ("record", "pins")) or []
    looked = any(pin["now"] is not None for pin in pins)
    yield from _rows(
        "The record, then and now" if looked else "The record then; nobody wrote down how it is now", pins
    )


def _words() -> Iterator[str]:
    yield from _heading("Words")
    for word, means in _MEANS:
        yield f"- *{word}*: {means}"


def _at(document: Document, path: Sequence[str]) -> Any:
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _heading(title: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Only the rows whose last cell says something."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        if row[-1] not in (None, "", [], {}):
            yield f"| {' | '.join([row[0], *map(code, row[1:])])} |"


def _possible(document: Document) -> Iterator[str]:
    rows = document["possible"]
    if not rows:
        return
    certain = any(row["certain"] for row in rows)
    yield from _heading("What happened, and what may have" if certain else "What may have happened")
    yield "| What | How to tell |"
    yield "|---|---|"
    for row in rows:
        yield f"| {code(row['what'])} | {code(row['tell_by'])} |"


def _points(title: str, points: Sequence[Document]) -> Iterator[str]:
    if not points:
        return
    yield from _heading(title)
    for point in points:
        beside = [code(point[name]) for name in ("code", "digest", "at") if point[name]]
        yield " ".join(["-", code(point["text"]), *beside])


def _action(document: Document) -> Iterator[str]:
    action, approval = document["action"], document["approval"]
    if action is None:
        return
    yield from _heading("What was proposed")
    fields = action["fields"] or []
    facts = [
        (name, action[name])
        for name in (
            "operation",
            "operation_version",
            "target",
            "provider",
            "account",
            "idempotency_key",
            "undo",
        )
    ]
    facts.append(("must not happen twice", action["business_key_words"]))
    yield from _table(
        ("What", "Value"), [*facts, *((code(field["label"]), field["text"]) for field in fields)]
    )
    yield ""
    yield f"Digest {code(approval['digest'])}, seen as view {code(approval['view_digest'])}."


def _orders(document: Document) -> Iterator[str]:
    command = document["command"]
    if command is None:
        return
    yield from _heading("The order")
    clocks = command["clocks"]
    in_doubt = command["effect"] == "unknown"
    counts_from = clocks["not_found_counts_from"] if in_doubt else None
    yield from _table(
        ("What", "Value"),
        [*((name, command[name]) for name in _ORDER),
         ("not to be found counts as not happened from", counts_from),
         ("the provider remembers the key until", clocks["key_remembered_until"])],
    )  # fmt: skip


def _rows(title: str, rows: Sequence[Document] | None) -> Iterator[str]:
    if not rows:
        return
    yield from _heading(title)
    for row in rows:
        told = [f"{name} {code(value)}" for name, value in row.items() if value not in (None, "", [], {})]
        yield f"- {', '.join(told)}"


def _choices(rows: Sequence[Document]) -> Iterator[str]:
    if not rows:
        return
    yield from _heading("What can be done from here")
    for row in rows:
        how = "" if row["offered"] else " is not offered,"
        yield f"- {code(row['title'] or 'Nothing')}{how} {code(row['says'])}"


def _runbook(found: Document | None) -> Iterator[str]:
    if found is None:
        return
    yield from _heading("From the runbook")
    for line in found["lines"]:
        yield f"- {code(line)}"
