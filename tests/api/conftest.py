"""The world of the API's tests: the toy workflow's tenant with two reviewers and a token, and a second tenant."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.api.callers import Caller, as_json, automation, decision_body, proposal_body, signed_in, token_for
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import Desk, desk

__all__ = ["desk"]


@dataclass
class World:
    """`agent` has every scope in the desk's tenant; `ada` and `ben` review there; `foreign` is another tenant's."""

    desk: Desk
    agent: Caller
    ada: Caller
    ben: Caller
    foreign: Caller
    foreign_reviewer: Caller

    def proposed(self, key: str = "k-1", **changes: Any) -> dict[str, Any]:
        """A proposal made through the API."""
        proposal: dict[str, Any] = as_json(self.agent.post("/proposals", proposal_body(key, **changes)), 201)
        return proposal

    def view(self, proposal: dict[str, Any], person: Caller | None = None) -> dict[str, Any]:
        view: dict[str, Any] = as_json((person or self.ada).get(f"/proposals/{proposal['id']}/view"))
        return view

    def decide(
        self,
        proposal: dict[str, Any],
        decision: str = "approve",
        person: Caller | None = None,
        **changes: Any,
    ) -> Any:
        """The answer to a decision on what the person sees now."""
        person = person or self.ada
        body = decision_body(self.view(proposal, person), decision, **changes)
        return person.post(f"/proposals/{proposal['id']}/decisions", body)

    def approved(self, **changes: Any) -> dict[str, Any]:
        """A proposal with a ready command."""
        proposal = self.proposed(**changes)
        as_json(self.decide(proposal))
        return as_json(self.agent.get(f"/proposals/{proposal['id']}"))  # type: ignore[no-any-return]


@pytest.fixture
def world(desk: Desk) -> World:
    other = make_tenant("lagoon")
    return World(
        desk=desk, agent=automation(token_for(desk.tenant)), ada=signed_in(desk.ada), ben=signed_in(desk.ben),
        foreign=automation(token_for(other)), foreign_reviewer=signed_in(make_user(other, "eve")),
    )  # fmt: skip
