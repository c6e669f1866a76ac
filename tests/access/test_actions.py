"""People, roles, automations and tokens: each change with its event, each by somebody who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connections

from access import actions
from access.actions import NameTaken, TokenLife
from access.actions_people import reactivate_membership
from access.auth import agent_actor, person_actor
from access.enums import Role, Scope
from access.models import Agent, ApiToken, GroupMembership, Membership, User
from access.policies import NotAMember, RoleMissing, UnknownRole, can_manage, check_member, membership_of
from access.selectors import Standing, members, standings
from access.selectors import tokens as tokens_of
from audit.actors import INSTALLATION, Actor, worker_actor
from audit.models import Event
from common.clock import db_clock
from common.errors import Refused
from common.tx import NoTransaction
from tests.access import people
from tests.access.people import INSTALLER, PASSWORD

pytestmark = pytest.mark.django_db
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}


def kinds() -> list[str]:
    return list(Event.objects.order_by("at", "id").values_list("kind", flat=True))


def actor_of(user: User) -> Actor:
    return person_actor(Membership.objects.get(user=user))


def test_every_action_writes_its_event() -> None:
    tenant = people.tenant()
    user = people.person(tenant, "ada", Role.REVIEWER)
    group = actions.create_group(tenant=tenant, name="Refund desk", **BY)
    actions.add_to_group(group=group, user=user, **BY)
    actions.set_roles(tenant=tenant, user=user, roles=[Role.ADMIN, Role.REVIEWER], **BY)
    agent = people.agent(tenant, acts_for=user)
    _, token = people.token(agent, Scope.RUNS_WRITE)
    actions.revoke_token(token=token, reason="lost", **BY)
    actions.deactivate_agent(agent=agent, **BY)
    actions.remove_from_group(group=group, user=user, **BY)
    actions.deactivate_membership(tenant=tenant, user=user, **BY)
    actions.deactivate_user(user=user, reason="left", **BY)
    assert kinds() == [
        "tenant.created", "user.created", "group.created", "group.joined", "membership.roles_set", "agent.created",
        "token.issued", "token.revoked", "agent.deactivated", "group.left", "membership.deactivated",
        "user.deactivated",
    ]  # fmt: skip
    assert set(Event.objects.values_list("tenant_id", flat=True)) == {tenant.id}


def test_doing_it_again_changes_nothing_and_says_nothing() -> None:
    tenant = people.tenant()
    user = people.person(tenant, "ada")
    group = actions.create_group(tenant=tenant, name="Refund desk", **BY)
    agent = people.agent(tenant)
    _, token = people.token(agent)
    for _ in range(2):
        actions.add_to_group(group=group, user=user, **BY)
    for _ in range(2):
        actions.remove_from_group(group=group, user=user, **BY)
        actions.revoke_token(token=token, **BY)
        actions.deactivate_agent(agent=agent, **BY)
        actions.deactivate_user(user=user, **BY)
    assert len(kinds()) == len(set(kinds()))
    revoked = ApiToken.objects.get().revoked_at
    actions.revoke_token(token=token, **BY)
    assert ApiToken.objects.get().revoked_at == revoked


def test_no_name_mail_or_token_stands_in_the_history() -> None:
    tenant = people.tenant()
    user = actions.create_user(
        tenant=tenant,
        username="zoe",
        display_name="Zoe Zwart",
        email="zoe@example.org",
        password=PASSWORD,
        **BY,
    )
    text, row = people.token(people.agent(tenant, acts_for=user), Scope.RUNS_READ)
    told = str(list(Event.objects.values()))
    for secret in ("zoe", "Zwart", "example.org", PASSWORD, text, row.sha256):
        assert secret not in told


def test_roles_are_from_the_list_each_once_in_its_order() -> None:
    tenant = people.tenant()
    user = people.person(tenant, "ada", Role.ADMIN, Role.REVIEWER, Role.ADMIN)
    assert Membership.objects.get(user=user).roles == ["reviewer", "admin"]
    with pytest.raises(UnknownRole):
        actions.set_roles(tenant=tenant, user=user, roles=["king"], **BY)  # type: ignore[list-item]
    with pytest.raises(UnknownRole):
        people.token(people.agent(tenant), "decide")  # type: ignore[arg-type]


def test_a_taken_name_is_refused() -> None:
    tenant = people.tenant()
    people.person(tenant, "ada")
    people.agent(tenant)
    actions.create_group(tenant=tenant, name="Desk", **BY)
    for again in (
        people.tenant,
        lambda: people.person(tenant, "ada"),
        lambda: people.agent(tenant),
        lambda: actions.create_group(tenant=tenant, name="Desk", **BY),
    ):
        with pytest.raises(NameTaken):
            again()
    assert people.agent(people.tenant("south")).name == "intake"


def test_only_admins_of_the_tenant_and_the_command_line_manage() -> None:
    north, south = people.tenant("north"), people.tenant("south")
    admin, reviewer = people.person(north, "ada", Role.ADMIN), people.person(north, "rob", Role.REVIEWER)
    stranger = people.person(south, "sue", Role.ADMIN)
    agent = people.agent(north, acts_for=admin)
    assert can_manage(INSTALLER, north.id)
    assert can_manage(actor_of(admin), north.id)
    for by in (actor_of(reviewer), actor_of(stranger), agent_actor(agent, through=""), worker_actor("w")):
        assert not can_manage(by, north.id)
        with pytest.raises(Refused):
            actions.create_group(tenant=north, name="Desk", by=by, clock=db_clock)
        with pytest.raises(Refused):
            actions.set_roles(tenant=north, user=reviewer, roles=[Role.ADMIN], by=by, clock=db_clock)
        with pytest.raises(Refused):
            people.token(agent, by=by)
    with pytest.raises(RoleMissing):
        actions.create_tenant(slug="west", name="West", by=actor_of(admin), clock=db_clock)


def test_a_person_of_two_tenants_is_not_deactivated_by_an_admin_of_one() -> None:
    north, south = people.tenant("north"), people.tenant("south")
    admin, both = people.person(north, "ada", Role.ADMIN), people.person(north, "bob")
    actions.set_roles(tenant=south, user=both, roles=[], **BY)
    with pytest.raises(NotAMember):
        actions.deactivate_user(user=both, by=actor_of(admin), clock=db_clock)
    actions.deactivate_user(user=both, **BY)
    told = Event.objects.filter(kind="user.deactivated").values_list("tenant_id", flat=True)
    assert set(told) == {north.id, south.id}


def test_a_person_without_a_tenant_can_be_deactivated() -> None:
    user = User.objects.create(username="nobody")
    actions.deactivate_user(user=user, **BY)
    assert Event.objects.get().tenant_id == INSTALLATION


def test_who_is_deactivated_is_no_member() -> None:
    north, south = people.tenant("north"), people.tenant("south")
    user = people.person(north, "ada", Role.REVIEWER)
    assert check_member(user.id, north.id).roles == ["reviewer"]
    assert membership_of(user.id, south.id) is None
    assert membership_of(None, north.id) is None
    actions.deactivate_membership(tenant=north, user=user, **BY)
    assert membership_of(user.id, north.id) is None
    actions.set_roles(tenant=north, user=user, roles=[Role.REVIEWER, Role.OPERATOR], **BY)
    assert membership_of(user.id, north.id) is None  # other roles let nobody back in
    reactivate_membership(tenant=north, user=user, **BY)
    assert check_member(user.id, north.id).roles == ["reviewer", "operator"]
    actions.deactivate_user(user=user, **BY)
    assert membership_of(user.id, north.id) is None
    group = actions.create_group(tenant=north, name="Desk", **BY)
    with pytest.raises(NotAMember):
        actions.add_to_group(group=group, user=user, **BY)


def test_standings_are_of_active_members_only() -> None:
    north, south = people.tenant("north"), people.tenant("south")
    ada, bob = people.person(north, "ada", Role.REVIEWER, Role.ADMIN), people.person(north, "bob")
    sue = people.person(south, "sue", Role.REVIEWER)
    group = actions.create_group(tenant=north, name="Desk", **BY)
    actions.add_to_group(group=group, user=ada, **BY)
    actions.deactivate_user(user=bob, **BY)
    found = standings(north.id, [ada.id, bob.id, sue.id])
    assert found == {
        ada.id: Standing(
            ada.id,
            frozenset({"reviewer", "admin"}),
            frozenset({group.id}),
            frozenset({ada.id}),
            break_glass=False,
        )
    }


def test_a_locked_standing_holds_a_revocation_back() -> None:
    from django.db import OperationalError, connection, transaction

    from tests.audit.test_sealer import in_thread

    tenant = people.tenant()
    ada = people.person(tenant, "ada", Role.REVIEWER)
    refused: list[str] = []

    def revoke() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
        try:
            actions.set_roles(tenant=tenant, user=ada, roles=[], **BY)
        except OperationalError as error:
            refused.append(str(error))

    with pytest.raises(NoTransaction):
        standings(tenant.id, [ada.id], lock=True)
    with transaction.atomic():
        standings(tenant.id, [ada.id], lock=True)
        in_thread(revoke).join()
    assert len(refused) == 1
    in_thread(revoke).join()
    assert standings(tenant.id, [ada.id])[ada.id].roles == frozenset()


@pytest.mark.parametrize("life", [timedelta(0), timedelta(days=400), timedelta(days=-1)])
def test_a_token_lives_for_a_while_and_no_longer_than_a_year(life: timedelta) -> None:
    with pytest.raises(TokenLife):
        people.token(people.agent(people.tenant()), life=life)


def test_no_token_for_an_automation_that_may_not_work() -> None:
    tenant = people.tenant()
    user = people.person(tenant, "ada")
    idle, orphan = people.agent(tenant, "idle"), people.agent(tenant, "orphan", acts_for=user)
    actions.deactivate_agent(agent=idle, **BY)
    actions.deactivate_user(user=user, **BY)
    for agent in (idle, orphan):
        with pytest.raises(NotAMember):
            people.token(Agent.objects.get(id=agent.id))


def test_an_automation_acts_for_members_of_its_tenant_only() -> None:
    north, south = people.tenant("north"), people.tenant("south")
    with pytest.raises(NotAMember):
        people.agent(north, acts_for=people.person(south, "sue"))


def test_lists_are_of_one_tenant() -> None:
    north, south = people.tenant("north"), people.tenant("south")
    ada = people.person(north, "ada")
    people.person(south, "sue")
    _, token = people.token(people.agent(north))
    people.token(people.agent(south))
    assert [member.user for member in members(north.id)] == [ada]
    assert list(tokens_of(north.id)) == [token]


def test_a_row_cannot_point_into_another_tenant() -> None:
    """Written past every rule, by the application role itself."""
    north, south = people.tenant("north"), people.tenant("south")
    agent = people.agent(south)
    with pytest.raises(IntegrityError, match="access_apitoken_agent_tenant"):
        ApiToken.objects.create(
            tenant=north, agent=agent, prefix="plc_", sha256="x", expires_at=db_clock(), scopes=[]
        )
    _, token = people.token(agent)
    with pytest.raises(IntegrityError, match="access_apitoken_agent_tenant"):
        ApiToken.objects.filter(id=token.id).update(tenant=north)
    user = people.person(north, "ada")
    group = actions.create_group(tenant=south, name="Desk", **BY)
    membership = Membership.objects.get(user=user)
    for tenant, name in (
        (north, "access_groupmembership_group_tenant"), (south, "access_groupmembership_membership_tenant"),
    ):  # fmt: skip
        with pytest.raises(IntegrityError, match=name):
            GroupMembership.objects.create(tenant=tenant, membership=membership, group=group)


def test_the_application_role_owns_nothing() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT r.rolsuper, r.rolbypassrls, r.rolcreatedb,"
            " (SELECT count(*) FROM pg_class c WHERE c.relowner = r.oid) FROM pg_roles r WHERE rolname = current_user"
        )
        assert cursor.fetchone() == (False, False, False, 0)
