"""Whoever stands behind what is asked for never decides on it, whichever way it came and whatever changed since."""

from datetime import timedelta
from typing import Any

import pytest

from access import actions_agents, actions_people
from access.enums import DutyKind, Role, Scope
from access.models import Agent, User
from approvals.models import Proposal
from approvals.refusals import OwnProposal
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from tests.access import people
from tests.access.people import INSTALLER
from tests.api.callers import as_json, automation, proposal_body, refused, run_body, signed_in, token_for
from tests.api.conftest import World
from tests.api.test_hooks import Sender, desk, sender, take_in
from tests.factories import make_user
from tests.workflows.conftest import Desk
from workflows.actions.endpoints import rotate_secret
from workflows.authoring import Done, WaitForData
from workflows.models import Delivery, Run
from workflows.results import StageResult

__all__ = ["desk", "sender"]
pytestmark = pytest.mark.django_db
OTHER = {"order": "1042", "amount": "8.00", "currency": "EUR"}
ASKS = WaitForData(
    "Which order is it?",
    {"properties": {"order": {"type": "string"}}, "required": ["order"]},
    timedelta(hours=1),
)
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}


def person_of(user: User) -> Actor:
    return Actor(performed_by=f"user:{user.pk}", via=Via.SESSION, owner=Owner.PERSON, user_id=user.pk)


def changed(agent: Agent, **changes: Any) -> None:
    exactly = {
        "acts_for": agent.acts_for, "acts_for_system": agent.acts_for_system, "owner": agent.owner,
        "workflows": agent.workflows, "operations": agent.operations,
    }  # fmt: skip
    actions_agents.change_agent(agent=agent, **(exactly | changes), **BY)


# -- webhooks -----------------------------------------------------------------------------------------------------


def asked_by_webhook(desk: Desk, sender: Sender) -> Proposal:
    assert sender.post().status_code == 202
    assert take_in() == 1
    desk.advance()
    return Proposal.objects.get(run_id=Run.objects.get().pk)


def test_who_answers_for_an_endpoints_automation_does_not_decide_on_its_webhooks(
    desk: Desk, sender: Sender
) -> None:
    changed(sender.agent, owner=desk.ada)
    proposal = asked_by_webhook(desk, sender)
    for user in (desk.ada, desk.ben):  # who answers for it, and for whom it acts
        with pytest.raises(OwnProposal):
            desk.decide(proposal, user=user)
    desk.decide(proposal, user=make_reviewer(desk))


def test_what_came_by_webhook_stays_closed_to_accounts_that_come_apart_later(
    desk: Desk, sender: Sender
) -> None:
    actions_people.link_accounts(tenant=desk.tenant, user=desk.ben, other=desk.ada, **BY)
    proposal = asked_by_webhook(desk, sender)
    actions_people.unlink_account(tenant=desk.tenant, user=desk.ada, reason="Two people after all.", **BY)
    with pytest.raises(OwnProposal):
        desk.decide(proposal, user=desk.ada)


def test_a_webhook_starts_nothing_that_its_automation_may_not_start(desk: Desk, sender: Sender) -> None:
    changed(sender.agent, workflows=["another-workflow"])
    sender.post()
    assert take_in() == 1
    assert (Delivery.objects.get().code, Run.objects.count()) == ("not_allowed_for_agent", 0)


def make_reviewer(desk: Desk) -> User:
    return make_user(desk.tenant, "cleo", roles=[Role.REVIEWER])


def test_who_was_shown_an_endpoints_secret_does_not_decide_on_what_it_signed(
    desk: Desk, sender: Sender
) -> None:
    """They could have signed it themselves, whoever the automation is said to act for."""
    cleo = make_user(desk.tenant, "cleo", roles=[Role.REVIEWER, Role.ADMIN])
    rotate_secret(endpoint=sender.endpoint, overlap=timedelta(hours=1), by=person_of(cleo), clock=db_clock)
    proposal = asked_by_webhook(desk, sender)
    with pytest.raises(OwnProposal):
        desk.decide(proposal, user=cleo)
    desk.decide(proposal, user=desk.ada)


# -- tokens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rotated", [False, True])
def test_who_was_shown_a_token_does_not_decide_on_what_is_asked_with_it(world: World, rotated: bool) -> None:
    tenant = world.desk.tenant
    cleo = make_user(tenant, "cleo", roles=[Role.REVIEWER, Role.ADMIN])
    agent, giver = people.agent(tenant, "errands"), INSTALLER if rotated else person_of(cleo)
    text, row = people.token(agent, *Scope, by=giver)
    if rotated:
        text, _ = actions_agents.rotate_token(
            token=row, overlap=timedelta(0), by=person_of(cleo), clock=db_clock
        )
    body = proposal_body("k-9")
    proposal = as_json(automation(text).post("/proposals", body), 201)
    assert cleo.pk in side_of(proposal)
    refused(world.decide(proposal, person=signed_in(cleo)), 403, "own_proposal")
    as_json(world.decide(proposal, person=world.ada))


# -- a newer version, and what it rests on ------------------------------------------------------------------------


def side_of(proposal: dict[str, Any]) -> set[Any]:
    return set(Proposal.objects.get(pk=proposal["id"]).excluded_users)


def test_who_is_behind_the_automation_now_does_not_decide_on_its_newer_version(world: World) -> None:
    """The run keeps who was behind it when it began; a version made later has its own people too."""
    ada, ben = world.desk.ada, world.desk.ben
    agent = Agent.objects.get(tenant=world.desk.tenant, name="intake")
    changed(agent, acts_for=ada)
    first = world.proposed("k-1")
    changed(agent, acts_for=ben)
    second = world.proposed("k-2", arguments=OTHER, supersedes=first["id"])
    assert side_of(second) == {ada.pk, ben.pk}
    refused(world.decide(second, person=world.ben), 403, "own_proposal")
    refused(world.decide(second, person=world.ada), 403, "own_proposal")


def test_a_duty_that_ended_opens_no_newer_version_of_what_was_closed(world: World) -> None:
    given = {"tenant": world.desk.tenant, "kind": DutyKind.POLICY_EDITOR, "workflow": "toy-outside"}
    duty = actions_people.give_duty(user=world.desk.ada, **given, **BY)
    first = world.proposed("k-1")
    actions_people.end_duty(tenant=world.desk.tenant, duty_id=duty.pk, reason="Handed over.", **BY)
    second = world.proposed("k-2", arguments=OTHER, supersedes=first["id"])
    refused(world.decide(second, person=world.ada), 403, "own_proposal")
    as_json(world.decide(second, person=world.ben))


def test_who_stands_behind_supplied_data_does_not_decide_on_what_rests_on_it(world: World) -> None:
    """Another automation answers what the run asks for, with the order that its person wants to be paid."""

    def judge(context: object) -> StageResult:
        given = getattr(context, "data", {})
        return Done({"order": given["order"]}) if given else ASKS

    world.desk.till.stages["judge"] = judge
    run = as_json(world.agent.post("/runs", run_body()), 201)
    world.desk.advance()
    path = f"/runs/{run['run_id']}"
    wait_id = as_json(world.agent.get(path))["waiting"]["wait_id"]
    helper = automation(token_for(world.desk.tenant, "helper", acts_for=world.desk.ben))
    as_json(helper.post(f"{path}/data", {"wait_id": wait_id, "order": "1042"}))
    world.desk.advance()
    proposal = Proposal.objects.get(run_id=run["run_id"])
    with pytest.raises(OwnProposal):
        world.desk.decide(proposal, user=world.desk.ben)
    world.desk.decide(proposal, user=world.desk.ada)
