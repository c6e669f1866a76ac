"""What the provider's answers say about one effect of ours: a refund, or the reversal of one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.outgoing import Answer, NotSent, Outcome
from examples.refunds.source import parsed, retry_after
from workflows.authoring import Finding, Observation

Thing = Mapping[str, Any]
IsOurs = Callable[[Thing], bool]


def observed(outcome: Outcome, is_ours: IsOurs, kept: Sequence[str]) -> Observation:
    """The transport's outcome, unchanged. A success counts only with a reference and about this very thing.

    ``kept``: the members that are kept as the result, none of them personal.
    """
    if isinstance(outcome, NotSent):
        return Observation(sent=False, code=f"not_sent_{outcome.kind}", detail=outcome.detail)
    if not isinstance(outcome, Answer):
        return Observation(sent=True, code=f"no_answer_{outcome.kind}", detail=outcome.detail)
    body = parsed(outcome)
    reference = str(body["id"]) if outcome.status < 300 and is_ours(body) and body.get("id") else ""
    return Observation(
        sent=True, status=outcome.status, reference=reference, code=str(body.get("code", "")),
        retry_after=retry_after(outcome), body=_kept(body, kept) if reference else {},
    )  # fmt: skip


def found(things: Sequence[Thing], what: str, is_ours: IsOurs, kept: Sequence[str]) -> Finding:
    """Under our key stands this very thing, nothing, or something else: that settles nothing."""
    if not things:
        return Finding("not_found")
    ours = [thing for thing in things if is_ours(thing) and thing.get("id")]
    if not ours:
        return Finding("no_answer", detail=f"another {what} stands under this key")
    detail = f"{len(things)} {what}s under one key" if len(things) > 1 else ""
    return Finding("happened", str(ours[0]["id"]), detail, _kept(ours[0], kept))


def _kept(thing: Thing, names: Sequence[str]) -> dict[str, str]:
    return {name: str(thing[name]) for name in names if name in thing}
