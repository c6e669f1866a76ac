"""The provider contract: whatever the operation takes for a definite *no*, the provider's journal shows without effect.

An operation may narrow the one outcome table only with such a proof: each status it declares is made here by the real
provider, and what each unclear answer may mean is shown beside it.
"""

from typing import Any

import pytest

from examples.refunds.operation import IssueRefund
from tests.examples.refunds.conftest import RunningProvider, Seen
from workflows.classify import MAY_BE_REFUSED, Meaning, Observation, classify

OUTCOMES = IssueRefund.outcomes


def meaning(seen: Seen) -> Meaning:
    body = seen.json if seen.raw[:1] == b"{" else {}
    reference = str(body.get("id", "")) if seen.status < 300 else ""
    return classify(
        Observation(sent=True, status=seen.status, code=body.get("code", ""), reference=reference), OUTCOMES
    )


def refund(provider: RunningProvider, key: str, **changes: Any) -> Seen:
    order = changes.pop("order", None) or provider.new_order()
    headers = {name: changes.pop(name) for name in ("If_Match", "access") if name in changes}
    body = {"order": order, "amount": "10.00", "currency": "EUR", "reason": "late"} | changes
    access = headers.pop("access", "demo-provider-key")
    return provider.call("POST", "/refunds", body, key=access, Idempotency_Key=key, **headers)


@pytest.mark.parametrize(
    ("status", "changes", "expected"),
    [
        (401, {"access": "expired-provider-key"}, Meaning.NOT_AUTHORIZED),
        (403, {"access": "revoked-provider-key"}, Meaning.NOT_AUTHORIZED),
        (404, {"order": "nowhere"}, Meaning.REFUSED),
        (412, {"If_Match": '"some-other-version"'}, Meaning.REFUSED),
        (422, {"amount": "100.01"}, Meaning.REFUSED),
    ],
)
def test_a_definite_no_has_no_effect(
    provider: RunningProvider, status: int, changes: dict[str, Any], expected: Meaning
) -> None:
    key = f"contract-{status}"
    seen = refund(provider, key, **changes)
    assert (seen.status, meaning(seen)) == (status, expected)
    assert provider.deliveries(key)[1] == 0


def test_a_request_that_is_not_understood_has_no_effect(provider: RunningProvider) -> None:
    seen = provider.call("POST", "/refunds", ["no", "object"], Idempotency_Key="contract-400")
    assert seen.status in OUTCOMES.refused
    assert meaning(seen) is Meaning.REFUSED
    assert provider.deliveries("contract-400")[1] == 0


def test_too_many_requests_are_turned_away_before_anything_happens(provider: RunningProvider) -> None:
    provider.switch("dedup", {"fault": "status", "status": 429, "next": 1})
    seen = refund(provider, "contract-429")
    assert (seen.status, meaning(seen)) == (429, Meaning.NOT_EXECUTED)
    assert provider.deliveries("contract-429") == (1, 0)


def test_a_key_that_comes_with_other_parameters_has_had_its_effect_before(provider: RunningProvider) -> None:
    order = provider.new_order()
    refund(provider, "contract-key", order=order)
    seen = refund(provider, "contract-key", order=order, amount="20.00")
    assert meaning(seen) is Meaning.KEY_REUSED
    assert provider.deliveries("contract-key") == (2, 1)


@pytest.mark.parametrize("status", [408, 425, 499, 500, 502, 503, 504, 302, 307])
@pytest.mark.parametrize("executed", [True, False])
def test_what_may_be_either_is_unknown(provider: RunningProvider, status: int, executed: bool) -> None:
    """The same answer, with and without an effect: no declaration may make it definite."""
    key = f"contract-{status}-{executed}"
    provider.switch("dedup", {"fault": "status", "status": status, "execute": executed, "next": 1})
    seen = refund(provider, key)
    assert (seen.status, meaning(seen)) == (status, Meaning.UNKNOWN)
    assert provider.deliveries(key) == (1, int(executed))


def test_nothing_else_is_declared() -> None:
    assert OUTCOMES.refused <= MAY_BE_REFUSED
    assert OUTCOMES.doubtful == frozenset()
    assert IssueRefund.key_retention is None, "it can be looked up, so nothing needs to be sent a second time"
