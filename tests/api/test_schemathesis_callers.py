"""The published description is true for whoever asks: nobody, narrow tokens, another organisation, people; about things
that are there, in each of their states.
"""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from hypothesis import HealthCheck, Phase, settings

from access.enums import Role, Scope
from access.management.operator import at_the_console
from approvals.models import Proposal
from common.clock import db_clock
from tests.api.callers import Caller, automation, signed_in, token_for
from tests.api.conftest import World
from tests.api.test_schemathesis import CHECKED, schema
from tests.factories import make_user
from workflows.actions.cancelling import cancel_run
from workflows.actions.erasing import erase_content
from workflows.models import Command, Document

pytestmark = pytest.mark.django_db
OUTSIDE = ("nobody", "foreign", "foreign person")
REFUSED = (400, 401, 403, 404, 405, 413, 415, 422)


@pytest.fixture
def known(world: World) -> dict[str, list[str]]:
    return things(world)


@pytest.fixture
def callers(world: World) -> dict[str, list[Caller]]:
    """Who asks, by kind; none is nobody."""
    tenant = world.desk.tenant
    narrow = [automation(token_for(tenant, f"narrow-{n}", scopes=[scope])) for n, scope in enumerate(Scope)]
    anna = make_user(tenant, "anna", roles=[Role.AUDITOR])
    return {
        "nobody": [Caller(Client(), {})], "narrow": narrow, "foreign": [world.foreign],
        "foreign person": [world.foreign_reviewer], "auditor": [signed_in(anna)], "token": [world.agent],
        "person": [world.ada],
    }  # fmt: skip


def things(world: World) -> dict[str, list[str]]:
    """Ids by the name of the parameter: what waits, what was done, what was rejected, what was erased."""
    waits, rejected, over = (world.desk.proposed(order=str(number)) for number in range(3))
    done = world.desk.approved(order="9")
    world.desk.work()
    world.desk.advance()
    world.desk.decide(rejected, "reject")
    by = at_the_console()
    cancel_run(tenant_id=over.tenant_id, run_id=over.run_id, reason="over", by=by, clock=db_clock)
    erase_content(tenant_id=over.tenant_id, run_id=over.run_id, why="asked", by=by, clock=db_clock)
    proposals = [waits, rejected, over, Proposal.objects.get(pk=done.proposal_id)]
    return {
        "proposal_id": [str(row.pk) for row in proposals],
        "run_id": [str(row.run_id) for row in proposals],
        "command_id": [str(pk) for pk in Command.objects.values_list("pk", flat=True)],
        "ref": [str(pk) for pk in Document.objects.values_list("pk", flat=True)],
        "name": ["toy.pay"], "step": ["execute", "pay"],
    }  # fmt: skip


@schema.parametrize()
@settings(
    max_examples=2, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_every_caller_gets_answers_that_are_described(
    case: Any, known: dict[str, list[str]], callers: dict[str, list[Caller]]
) -> None:
    """Each kind of caller looks at each thing, tokens of one scope in turn; nobody outside gets more than a refusal."""
    names = [name for name in case.path_parameters if name in known]
    for number in range(max((len(known[name]) for name in names), default=1)):
        for name in names:
            case.path_parameters[name] = known[name][number % len(known[name])]
        for kind, several in callers.items():
            answer = case.call(headers=several[number % len(several)].on_the_wire)
            case.validate_response(answer, checks=CHECKED)
            if kind in OUTSIDE and {"proposal_id", "run_id", "command_id", "ref"} & set(names):
                assert answer.status_code in REFUSED, (kind, case.path, answer.text)
                assert not any(
                    one in answer.text for one in known["run_id"] if one not in case.formatted_path
                )


def test_the_things_are_there(known: dict[str, list[str]]) -> None:
    assert {name: len(ids) for name, ids in known.items() if name != "ref"} == {
        "proposal_id": 4, "run_id": 4, "command_id": 1, "name": 1, "step": 2,
    }  # fmt: skip
    assert all(UUID(one) for one in known["run_id"])
