"""Automations within their bounds, the people behind them, and the life of their tokens."""

import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections, transaction
from django.test import Client

from access import actions, actions_agents, actions_people, tokens
from access.actions_agents import AlreadyRotated, Overlap, TokenEnded
from access.auth import agent_actor
from access.enums import Role, Scope
from access.models import Agent, ApiToken
from access.policies import NotAMember, RoleMissing
from access.usage import Usage, usage, write_usage
from approvals.models import Proposal
from approvals.refusals import OwnProposal
from audit.models import Event
from common.clock import db_clock
from common.dbroles import APPLICATION, SYSTEM
from common.ids import new_id
from tests.access.people import INSTALLER
from tests.api.callers import as_json, automation, proposal_body, refused, run_body
from tests.api.conftest import World, desk, world
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import Desk, person
from workflows.models import Run

__all__ = ["desk", "world"]
pytestmark = pytest.mark.django_db
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}


def made(of: Desk, name: str = "bounded", **bounds: Any) -> tuple[Agent, str, ApiToken]:
    agent = actions.create_agent(tenant=of.tenant, name=name, **(bounds | BY))
    text, row = actions.issue_token(agent=agent, scopes=list(Scope), life=timedelta(days=90), **BY)
    return agent, text, row


# -- what an automation may ask for ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "allowed"),
    [
        ({}, True), ({"workflows": ["toy-outside"]}, True), ({"operations": ["toy.pay"]}, True),
        ({"workflows": ["toy-outside"], "operations": ["toy.pay"]}, True), ({"workflows": []}, False),
        ({"workflows": ["toy-pay"]}, False), ({"operations": []}, False), ({"operations": ["toy.pay2"]}, False),
    ],
)  # fmt: skip
def test_what_it_proposes_is_within_its_bounds(world: World, bounds: dict[str, Any], allowed: bool) -> None:
    agent, text, _ = made(world.desk, **bounds)
    answer = automation(text).post("/proposals", proposal_body())
    denied = Event.objects.filter(kind="agent.denied", subject_id=agent.pk)
    if allowed:
        as_json(answer, 201)
        assert not denied.exists()
        return
    refused(answer, 403, "not_allowed_for_agent")
    assert not Proposal.objects.exists()
    event = denied.get()
    assert (event.performed_by, event.body) == (
        "api:bounded", {"workflow": "toy-outside", "operation": "toy.pay"},
    )  # fmt: skip


def test_runs_are_started_fed_and_cancelled_within_them_too(world: World) -> None:
    _, text, _ = made(world.desk, workflows=["toy-outside"])
    caller, run = automation(text), as_json(world.agent.post("/runs", run_body()), 201)
    refused(caller.post("/runs", run_body("e-2")), 403, "not_allowed_for_agent")
    bulk = as_json(caller.post("/runs", [run_body("e-3"), run_body("e-4")]))
    assert [item["problem"]["code"] for item in bulk["results"]] == ["not_allowed_for_agent"] * 2
    for path, body in (("cancel", {"reason": "r"}), ("data", {"wait_id": str(new_id())})):
        refused(caller.post(f"/runs/{run['run_id']}/{path}", body), 403, "not_allowed_for_agent")
    refused(caller.post(f"/runs/{new_id()}/cancel", {"reason": "r"}), 404, "not_found")
    assert Run.objects.count() == 1


def test_bounds_count_from_the_next_request_on(world: World) -> None:
    agent, text, _ = made(world.desk)
    caller = automation(text)
    as_json(caller.post("/runs", run_body()), 201)
    change = {"acts_for": None, "acts_for_system": "", "owner": None, "operations": None}
    actions_agents.change_agent(agent=agent, workflows=[], **(change | BY))
    refused(caller.post("/runs", run_body("e-2")), 403, "not_allowed_for_agent")
    event = Event.objects.get(kind="agent.changed")
    assert (event.body["before"]["workflows"], event.body["after"]["workflows"]) == (None, [])
    actions_agents.change_agent(agent=agent, workflows=[], **(change | BY))
    assert Event.objects.filter(kind="agent.changed").count() == 1


# -- the people behind it ----------------------------------------------------------------------------------------


def test_all_accounts_of_who_is_behind_it_are_on_its_side(world: World) -> None:
    of = world.desk
    other, owner = make_user(of.tenant, "ada-admin"), make_user(of.tenant, "olga")
    actions_people.link_accounts(tenant=of.tenant, user=of.ada, other=other, **BY)
    _, text, _ = made(of, acts_for=other, owner=owner)
    as_json(automation(text).post("/proposals", proposal_body()), 201)
    proposal = Proposal.objects.get()
    assert set(proposal.excluded_users) == {of.ada.pk, other.pk, owner.pk}
    for user in (of.ada, other, owner):
        with pytest.raises(OwnProposal):
            of.decide(proposal, user=user)
    of.decide(proposal, user=of.ben)


def test_accounts_that_are_taken_apart_later_stay_on_its_side(world: World) -> None:
    of, other = world.desk, make_user(world.desk.tenant, "ada-admin")
    actions_people.link_accounts(tenant=of.tenant, user=of.ada, other=other, **BY)
    _, text, _ = made(of, acts_for=of.ada)
    as_json(automation(text).post("/proposals", proposal_body()), 201)
    actions_people.unlink_account(tenant=of.tenant, user=other, reason="a trick", **BY)
    with pytest.raises(OwnProposal):
        of.decide(Proposal.objects.get(), user=other)


def test_it_may_act_for_a_system(world: World) -> None:
    _, text, _ = made(world.desk, acts_for_system="helpdesk")
    run = as_json(automation(text).post("/runs", run_body()), 201)
    assert Run.objects.get(pk=run["run_id"]).on_behalf_of == "system:helpdesk"
    assert Event.objects.get(kind="run.queued").on_behalf_of == "system:helpdesk"


def test_nobody_of_elsewhere_is_behind_it(world: World) -> None:
    eve = make_user(make_tenant("reef"), "eve2")
    for field in ("acts_for", "owner"):
        with pytest.raises(NotAMember):
            made(world.desk, field, **{field: eve})


def test_it_is_dead_with_the_person_it_acts_for_and_lives_with_them(world: World) -> None:
    of = world.desk
    agent, text, _ = made(of, acts_for=of.ada)
    caller = automation(text)
    as_json(caller.get("/runs"))
    actions.deactivate_user(user=of.ada, **BY)
    refused(caller.get("/runs"), 401, "not_authenticated")
    actions_people.reactivate_user(user=of.ada, **BY)
    as_json(caller.get("/runs"))
    actions.deactivate_agent(agent=agent, **BY)
    refused(caller.get("/runs"), 401, "not_authenticated")
    actions_agents.reactivate_agent(agent=agent, **BY)
    as_json(caller.get("/runs"))


# -- tokens ------------------------------------------------------------------------------------------------------


def test_both_work_until_the_overlap_is_over(world: World, desk: Desk) -> None:
    _, text, row = made(desk)
    newer, successor = actions_agents.rotate_token(token=row, overlap=timedelta(hours=2), **BY)
    row.refresh_from_db()
    assert timedelta(hours=1, minutes=59) < row.expires_at - db_clock() <= timedelta(hours=2)
    assert (successor.scopes, successor.replaces_id) == (row.scopes, row.pk)
    assert successor.expires_at - successor.created_at == timedelta(days=90)
    for each in (text, newer):
        as_json(automation(each).get("/runs"))
    ApiToken.objects.filter(pk=row.pk).update(expires_at=db_clock())
    refused(automation(text).get("/runs"), 401, "not_authenticated")
    as_json(automation(newer).get("/runs"))
    event = Event.objects.get(kind="token.rotated")
    assert (event.subject_id, event.body["by"]) == (row.pk, str(successor.pk))
    assert newer not in str(event.body)


def test_how_a_token_is_not_rotated(desk: Desk) -> None:
    agent, _, row = made(desk)
    for overlap in (timedelta(seconds=-1), timedelta(days=31)):
        with pytest.raises(Overlap):
            actions_agents.rotate_token(token=row, overlap=overlap, **BY)
    with pytest.raises(RoleMissing):
        actions_agents.rotate_token(token=row, overlap=timedelta(0), by=person(desk.ada), clock=db_clock)
    actions_agents.rotate_token(token=row, overlap=timedelta(hours=1), **BY)
    with pytest.raises(AlreadyRotated):
        actions_agents.rotate_token(token=row, overlap=timedelta(hours=1), **BY)
    _, revoked = actions.issue_token(agent=agent, scopes=[], life=timedelta(days=1), **BY)
    actions.revoke_token(token=revoked, **BY)
    with pytest.raises(TokenEnded):
        actions_agents.rotate_token(token=revoked, overlap=timedelta(0), **BY)


def test_an_overlap_never_makes_the_old_one_live_longer(desk: Desk) -> None:
    agent, _, _ = made(desk)
    _, short = actions.issue_token(agent=agent, scopes=[], life=timedelta(minutes=5), **BY)
    before = short.expires_at
    actions_agents.rotate_token(token=short, overlap=timedelta(hours=24), **BY)
    short.refresh_from_db()
    assert short.expires_at == before


def test_an_end_that_comes_near_is_said_once_and_not_of_a_replaced_one(desk: Desk) -> None:
    agent, _, far = made(desk)
    _, near = actions.issue_token(agent=agent, scopes=[], life=timedelta(days=13), **BY)
    _, replaced = actions.issue_token(agent=agent, scopes=[], life=timedelta(days=12), **BY)
    actions_agents.rotate_token(token=replaced, overlap=timedelta(days=1), life=timedelta(days=60), **BY)
    assert actions_agents.warn_of_ends(**BY) == 2
    assert actions_agents.warn_of_ends(**BY) == 0
    assert Event.objects.get(kind="token.ends_soon").subject_id == near.pk
    far.refresh_from_db()
    assert far.warned_at is None


def test_use_is_written_beside_requests_and_waits_for_nobody(world: World, desk: Desk) -> None:
    usage.flush()
    _, text, row = made(desk)
    as_json(automation(text).get("/runs"))
    row.refresh_from_db()
    assert row.last_used_at is None
    with transaction.atomic(using="owner"):
        ApiToken.objects.using("owner").select_for_update().get(pk=row.pk)
        assert usage.flush() == 1  # somebody holds the row: left out, not waited for
    row.refresh_from_db()
    assert row.last_used_at is None
    as_json(automation(text).get("/runs"))
    usage.flush()
    row.refresh_from_db()
    assert row.last_used_at is not None
    assert not Event.objects.filter(subject_id=row.pk).exclude(kind="token.issued").exists()


def test_an_older_use_never_overwrites_a_newer_one(desk: Desk) -> None:
    _, _, row = made(desk)
    key = (row.tenant_id, row.pk)
    write_usage({key: 10.0})
    row.refresh_from_db()
    first = row.last_used_at
    write_usage({key: 60.0, (new_id(), row.pk): 0.0, (row.tenant_id, new_id()): 0.0})
    row.refresh_from_db()
    assert first is not None
    assert row.last_used_at == first
    assert timedelta(seconds=9) < db_clock() - first < timedelta(seconds=60)


def test_uses_come_together_and_a_failed_write_ends_nothing() -> None:
    written: list[Mapping[tuple[UUID, UUID], float]] = []
    collected = Usage(written.append, every_s=0)
    tenant, token = new_id(), new_id()
    for _ in range(100):
        collected.note(tenant, token)
    assert collected.flush() == 1
    assert collected.flush() == 0
    [[key]] = [list(ages) for ages in written]
    assert key == (tenant, token)


def test_the_thread_writes_by_itself(desk: Desk) -> None:
    _, _, row = made(desk)
    done = threading.Event()

    def write(ages: Mapping[tuple[UUID, UUID], float]) -> None:
        write_usage(ages)
        connection.close()
        done.set()

    Usage(write, every_s=0.05).note(row.tenant_id, row.pk)
    assert done.wait(10)
    row.refresh_from_db()
    assert row.last_used_at is not None


def test_a_request_of_a_token_writes_nothing(world: World, desk: Desk) -> None:
    _, text, _ = made(desk)
    statements: list[str] = []

    def watch(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        statements.append(str(sql))
        return execute(sql, params, many, context)

    with connections[APPLICATION].execute_wrapper(watch), connections[SYSTEM].execute_wrapper(watch):
        as_json(automation(text).get("/runs"))
    assert statements
    assert [
        sql for sql in statements if not sql.lstrip().startswith(("SELECT", "SAVEPOINT", "RELEASE", "SET"))
    ] == []


def test_a_leaked_token_is_found_in_a_text_and_a_slip_is_none() -> None:
    text = tokens.new_token()
    slip = text[:-1] + ("a" if text[-1] != "a" else "b")
    leaked = f'export TOKEN="{text}"; curl -H "Authorization: Bearer {slip}"'
    assert tokens.find_tokens(leaked) == [text]


def test_the_agent_of_an_admin_manages_nothing(desk: Desk) -> None:
    admin = make_user(desk.tenant, "adam", roles=[Role.ADMIN])
    agent, _, row = made(desk, acts_for=admin)
    for refused_of in (
        lambda by: actions.revoke_token(token=row, by=by, clock=db_clock),
        lambda by: actions.deactivate_agent(agent=agent, by=by, clock=db_clock),
        lambda by: actions_agents.rotate_token(token=row, overlap=timedelta(0), by=by, clock=db_clock),
        lambda by: actions.set_roles(tenant=desk.tenant, user=desk.ada, roles=[], by=by, clock=db_clock),
    ):
        with pytest.raises(RoleMissing):
            refused_of(agent_actor(agent, through=""))


def test_the_form_of_an_automation_says_which_names_there_are(desk: Desk) -> None:
    """Whoever fills it in need not ask a developer how a workflow is called."""
    admin = make_user(desk.tenant, "adam", roles=[Role.ADMIN])
    client = Client()
    client.force_login(admin)
    page = client.get("/people/automations/new/").content.decode()
    assert "Installed here: " in page
    assert "toy-outside" in page
    assert "toy.pay" in page
    assert (
        f'<option value="{admin.pk}" selected>' in page
    )  # whoever makes it answers for it, until they say otherwise
    wrong = client.post("/people/automations/new/", {"name": "Mail Helper"}).content.decode()
    assert "Letters, digits and hyphens only: mail-helper." in wrong
    assert "slug" not in wrong
