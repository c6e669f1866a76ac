"""What this tenant's earlier actions say about the values of a new one: only of those that have happened.

Read while a proposal is made. Each question reads a bounded number of rows by an index: of a host that a million
proposals named, the latest thousand are looked at.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from approvals.models import Proposal
from approvals.oddities import Known
from approvals.refusals import Uninspectable
from approvals.shown import view_of
from approvals.traits import AMOUNT, Seen, fingerprint, seen_in
from common.content_errors import ContentErased
from common.fields import SCALES
from common.pipelined import Question, ask
from common.prepared import fetch
from workflows.enums import Effect

_LATEST: Final = 1_000
_HAPPENED: Final = [Effect.HAPPENED.value, Effect.PARTIAL.value]

_USED: Final = f"""
    SELECT w.n,
      EXISTS (SELECT FROM (SELECT t.proposal_id FROM approvals_trait t WHERE t.tenant_id = %(tenant)s
                AND t.operation = %(operation)s AND t.kind = w.kind AND t.fingerprint = w.fingerprint
                ORDER BY t.id DESC LIMIT {_LATEST}) l
              JOIN workflows_command c ON c.proposal_id = l.proposal_id AND c.effect = ANY(%(happened)s)),
      EXISTS (SELECT FROM (SELECT t.proposal_id FROM approvals_trait t WHERE t.tenant_id = %(tenant)s
                AND t.operation = %(operation)s AND t.target = %(target)s AND t.kind = w.kind
                AND t.fingerprint = w.fingerprint ORDER BY t.id DESC LIMIT {_LATEST}) l
              JOIN workflows_command c ON c.proposal_id = l.proposal_id AND c.effect = ANY(%(happened)s)),
      (SELECT l.proposal_id FROM (SELECT t.proposal_id FROM approvals_trait t WHERE t.tenant_id = %(tenant)s
                AND t.kind = w.kind AND t.likeness = w.likeness AND w.likeness <> ''
                AND t.fingerprint <> w.fingerprint ORDER BY t.id DESC LIMIT {_LATEST}) l
              JOIN workflows_command c ON c.proposal_id = l.proposal_id AND c.effect = ANY(%(happened)s) LIMIT 1)
    FROM unnest(%(kinds)s::text[], %(fingerprints)s::text[], %(likenesses)s::text[])
      WITH ORDINALITY AS w(kind, fingerprint, likeness, n)
"""  # noqa: S608 - our own text
_ON_TARGET: Final = f"""
    SELECT l.kind, count(DISTINCT l.proposal_id)
    FROM (SELECT t.kind, t.proposal_id FROM approvals_trait t WHERE t.tenant_id = %(tenant)s
            AND t.operation = %(operation)s AND t.target = %(target)s ORDER BY t.id DESC LIMIT {_LATEST}) l
    JOIN workflows_command c ON c.proposal_id = l.proposal_id AND c.effect = ANY(%(happened)s)
    GROUP BY l.kind
"""  # noqa: S608 - our own text
_AMOUNTS: Final = f"""
    SELECT w.n, coalesce(array_agg(l.amount), ARRAY[]::numeric[])
    FROM unnest(%(places)s::text[], %(currencies)s::text[]) WITH ORDINALITY AS w(place, currency, n),
    LATERAL (SELECT t.amount, t.proposal_id FROM approvals_trait t WHERE t.tenant_id = %(tenant)s
               AND t.operation = %(operation)s AND t.kind = 'amount' AND t.place = w.place
               AND t.currency = w.currency ORDER BY t.id DESC LIMIT {_LATEST}) l
    JOIN workflows_command c ON c.proposal_id = l.proposal_id AND c.effect = ANY(%(happened)s)
    GROUP BY w.n
"""  # noqa: S608 - our own text
_CURRENCIES: Final = """
    SELECT w.n, l.currency, count(*)
    FROM unnest(%(places)s::text[]) WITH ORDINALITY AS w(place, n), unnest(%(all)s::text[]) AS one(currency),
    LATERAL (SELECT t.currency, t.proposal_id FROM approvals_trait t WHERE t.tenant_id = %(tenant)s
               AND t.operation = %(operation)s AND t.kind = 'amount' AND t.place = w.place
               AND t.currency = one.currency ORDER BY t.id DESC LIMIT 50) l
    JOIN workflows_command c ON c.proposal_id = l.proposal_id AND c.effect = ANY(%(happened)s)
    GROUP BY w.n, l.currency
"""
"""The latest fifty of each currency, a probe of an index for each: asked where a currency is new to its place."""


def known_of(tenant_id: UUID, operation: str, target: str, seen: Sequence[Seen]) -> Known:
    """What is known of these values, for this operation and target. Four statements at most; none without values."""
    values = [one for one in seen if one.kind != AMOUNT]
    amounts = {(one.place, one.currency): one for one in seen if one.kind == AMOUNT and one.open}
    about: dict[str, Any] = {
        "tenant": tenant_id, "operation": operation, "target": target, "happened": _HAPPENED,
    }  # fmt: skip
    used, here_by_kind, known_amounts = _asked(tenant_id, about, values, list(amounts))
    unknown = [place for place in amounts if not known_amounts.get(place)]
    return Known(
        here=frozenset((one.kind, one.value) for one, _, here, _ in used if here),
        anywhere=frozenset((one.kind, one.value) for one, anywhere, _, _ in used if anywhere),
        here_by_kind=here_by_kind,
        alike=_alike(tenant_id, used),
        amounts=known_amounts,
        other_currencies=_other_currencies(about, unknown) if unknown else {},
    )


Used = tuple[Seen, bool, bool, UUID | None]
"""A value: was it used anywhere, was it for the target, and a proposal with another that reads like it."""


def _asked(
    tenant_id: UUID, about: Mapping[str, Any], values: Sequence[Seen], amounts: Sequence[tuple[str, str]]
) -> tuple[list[Used], dict[str, int], dict[tuple[str, str], Sequence[Decimal]]]:
    """On one way; nothing is asked of what is not there."""
    ways: list[Question[Any]] = []
    ways += [_used(tenant_id, about, values), Question(_ON_TARGET, about, dict)] if values else []
    ways += [_amounts(about, amounts)] if amounts else []
    found = ask(*ways) if ways else []
    used, here = found[:2] if values else ([], {})
    return used, here, found[-1] if amounts else {}


def _used(tenant_id: UUID, about: Mapping[str, Any], values: Sequence[Seen]) -> Question[list[Used]]:
    asked = {
        "kinds": [one.kind for one in values],
        "fingerprints": [fingerprint(tenant_id, one.kind, one.value) for one in values],
        "likenesses": [fingerprint(tenant_id, one.kind, one.alike) if one.alike else "" for one in values],
    }
    return Question(_USED, {**about, **asked}, lambda rows: [
        (values[n - 1], anywhere, here, alike) for n, anywhere, here, alike in rows
    ])  # fmt: skip


def _alike(tenant_id: UUID, used: Sequence[Used]) -> dict[tuple[str, str], str]:
    """By value, the other one that reads like it, as an earlier proposal showed it; none for what is known itself."""
    return {
        (one.kind, one.value): _named_there(tenant_id, proposal_id, one)
        for one, anywhere, _, proposal_id in used
        if proposal_id is not None and not anywhere
    }


def _named_there(tenant_id: UUID, proposal_id: UUID, like: Seen) -> str:
    """The value that reads like this one on the earlier proposal; empty where it may not be named or is gone."""
    earlier = Proposal.objects.filter(tenant_id=tenant_id, pk=proposal_id).first()
    try:
        fields = view_of(earlier).fields if earlier is not None else ()
    except (ContentErased, Uninspectable):
        return ""
    others = (
        one for one in seen_in(fields) if one.kind == like.kind and one.alike == like.alike and one.open
    )
    return next((one.shown for one in others if one.value != like.value), "")


def _amounts(
    about: Mapping[str, Any], wanted: Sequence[tuple[str, str]]
) -> Question[dict[tuple[str, str], Sequence[Decimal]]]:
    asked = {
        "places": [place[:200] for place, _ in wanted],
        "currencies": [currency for _, currency in wanted],
    }
    return Question(
        _AMOUNTS, {**about, **asked}, lambda rows: {wanted[n - 1]: amounts for n, amounts in rows}
    )


def _other_currencies(
    about: Mapping[str, Any], wanted: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, int]]:
    """How many earlier amounts there were in which other currency, of places that never had this one."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    asked = {"places": [place[:200] for place, _ in wanted], "all": sorted(SCALES)}
    for n, currency, count in fetch(_CURRENCIES, {**about, **asked}):
        found.setdefault(wanted[n - 1], {})[currency] = count
    return found
