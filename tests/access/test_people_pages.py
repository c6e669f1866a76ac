"""The pages of people, groups, automations and tokens: who sees them, what they do, what they refuse in words."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access import actions, actions_people
from access.enums import Role, Scope
from access.models import Agent, ApiToken, Group, Membership, User
from audit.models import Event
from common.clock import db_clock
from tests.access import people
from tests.access.people import INSTALLER

pytestmark = pytest.mark.django_db
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}


class Office:
    """A tenant with an admin, an auditor and a reviewer, each at a browser."""

    def __init__(self) -> None:
        self.tenant = people.tenant()
        self.adam = people.person(self.tenant, "adam", Role.ADMIN)
        self.anna = people.person(self.tenant, "anna", Role.AUDITOR)
        self.rosa = people.person(self.tenant, "rosa", Role.REVIEWER)
        self.desk = actions.create_group(tenant=self.tenant, name="Refund desk", **BY)
        actions.add_to_group(group=self.desk, user=self.rosa, **BY)
        self.agent = people.agent(self.tenant, acts_for=self.rosa)
        self.text, self.token = people.token(self.agent, Scope.RUNS_READ, Scope.RUNS_WRITE)

    def at(self, user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    def roles_of(self, user: User) -> list[str]:
        return Membership.objects.get(user=user).roles


@pytest.fixture
def office() -> Office:
    return Office()


def kinds() -> list[str]:
    return list(Event.objects.order_by("at", "id").values_list("kind", flat=True))


def shown_once(answer: Any) -> str:
    found = re.search(r'id="once"[^>]*value="([^"]+)"', answer.content.decode())
    assert found is not None
    return found[1]


PAGES = ["", "groups/", "automations/", "tokens/", "organisation/"]


def test_admins_and_auditors_read_and_nobody_else_does(office: Office) -> None:
    pages = [*PAGES, f"{office.rosa.pk}/", f"automations/{office.agent.pk}/", f"groups/{office.desk.pk}/"]
    for page in pages:
        assert office.at(office.adam).get(f"/people/{page}").status_code == 200, page
        auditors = office.at(office.anna).get(f"/people/{page}")
        assert auditors.status_code == 200
        main = auditors.content.decode().partition("<main")[2]
        assert 'method="post"' not in main, page
        assert office.at(office.rosa).get(f"/people/{page}").status_code == 403
        assert Client().get(f"/people/{page}").status_code == 302


def test_only_those_who_read_people_see_the_way_there(office: Office) -> None:
    ways = {user: 'href="/people/"' in office.at(user).get("/review/").content.decode() for user in
            (office.adam, office.anna, office.rosa)}  # fmt: skip
    assert ways == {office.adam: True, office.anna: True, office.rosa: False}


def test_what_belongs_to_another_organisation_is_missing(office: Office) -> None:
    other = people.tenant("south")
    sue = people.person(other, "sue", Role.ADMIN)
    agent = people.agent(other, "theirs")
    _, token = people.token(agent)
    group = actions.create_group(tenant=other, name="Theirs", **BY)
    client = office.at(office.adam)
    for address in (
        f"{sue.pk}/", f"{sue.pk}/deactivate/", f"automations/{agent.pk}/", f"automations/{agent.pk}/deactivate/",
        f"tokens/{token.pk}/revoke/", f"tokens/{token.pk}/rotate/", f"groups/{group.pk}/",
    ):  # fmt: skip
        assert client.get(f"/people/{address}").status_code == 404, address
        assert client.post(f"/people/{address}", {"sure": "yes", "why": "x", "hours": "0"}).status_code in (
            404,
            405,
        )
    assert "sue" not in client.get("/people/").content.decode()
    token.refresh_from_db()
    assert token.revoked_at is None


def test_a_new_person_signs_in_with_the_password_that_is_shown_once(office: Office) -> None:
    client = office.at(office.adam)
    answer = client.post(
        "/people/new/",
        {
            "username": "ravi",
            "display_name": "Ravi M.",
            "roles": ["reviewer"],
            "groups": [str(office.desk.pk)],
        },
    )
    password = shown_once(answer)
    assert "no-store" in answer["Cache-Control"]
    ravi = User.objects.get(username="ravi")
    assert ravi.check_password(password)
    assert office.roles_of(ravi) == ["reviewer"]
    assert list(Membership.objects.get(user=ravi).groups.all()) == [office.desk]
    assert password not in client.get(f"/people/{ravi.pk}/").content.decode()
    again = client.post("/people/new/", {"username": "ravi"})
    assert again.status_code == 409
    assert "This name is already in use." in again.content.decode()


def test_roles_change_after_a_page_that_says_what_it_means(office: Office) -> None:
    client, address = office.at(office.adam), f"/people/{office.rosa.pk}/roles/"
    asked = client.post(address, {"roles": ["operator"]}).content.decode()
    assert "Gets: Operator." in asked
    assert "Loses: Reviewer." in asked
    assert office.roles_of(office.rosa) == ["reviewer"]
    assert client.post(address, {"roles": ["operator"], "sure": "yes", "why": "new job"}).status_code == 302
    assert office.roles_of(office.rosa) == ["operator"]
    assert Event.objects.filter(kind="membership.roles_set", reason="new job").exists()


def test_nobody_gives_themself_a_role_silently(office: Office) -> None:
    client, address = office.at(office.adam), f"/people/{office.adam.pk}/roles/"
    wanted = {"roles": ["reviewer", "admin"]}
    assert "your own roles" in client.post(address, wanted).content.decode()
    silent = client.post(address, wanted | {"sure": "yes", "why": " "})
    assert silent.status_code == 422
    assert office.roles_of(office.adam) == ["admin"]
    client.post(address, wanted | {"sure": "yes", "why": "Rosa is ill"})
    event = Event.objects.get(kind="membership.roles_set", reason="Rosa is ill")
    assert event.body["own"] is True
    assert event.performed_by == f"user:{office.adam.pk}"


def test_the_last_admin_stays(office: Office) -> None:
    client = office.at(office.adam)
    for address, said in (("roles/", {"roles": ["reviewer"]}), ("deactivate/", {})):
        answer = client.post(f"/people/{office.adam.pk}/{address}", said | {"sure": "yes", "why": "leaving"})
        assert answer.status_code == 409
        assert "last active admin" in answer.content.decode()
    assert office.roles_of(office.adam) == ["admin"]
    actions.set_roles(tenant=office.tenant, user=office.anna, roles=[Role.ADMIN], **BY)
    answer = client.post(f"/people/{office.adam.pk}/deactivate/", {"sure": "yes", "why": "leaving"})
    assert answer.status_code == 302
    assert client.get("/people/").status_code == 302


def test_a_deactivated_person_is_out_at_the_next_click_with_their_automations(office: Office) -> None:
    rosas, header = office.at(office.rosa), {"Authorization": f"Bearer {office.text}"}
    assert rosas.get("/review/").status_code == 200
    assert Client().get("/api/v1/runs", headers=header).status_code == 200
    client = office.at(office.adam)
    asked = client.get(f"/people/{office.rosa.pk}/deactivate/").content.decode()
    assert "Automations that act for them are refused from then on: intake." in asked
    client.post(f"/people/{office.rosa.pk}/deactivate/", {"sure": "yes", "why": "left"})
    assert rosas.get("/review/").status_code == 302
    assert Client().get("/api/v1/runs", headers=header).status_code == 401
    client.post(f"/people/{office.rosa.pk}/reactivate/", {"sure": "yes", "why": ""})
    assert office.at(office.rosa).get("/review/").status_code == 200
    assert kinds()[-2:] != []
    assert {"membership.deactivated", "membership.reactivated"} <= set(kinds())


def test_accounts_of_one_person_are_put_together_and_never_apart_by_themself(office: Office) -> None:
    client = office.at(office.adam)
    second = people.person(office.tenant, "adam2", Role.REVIEWER)
    other = Membership.objects.get(user=second)
    address = f"/people/{office.adam.pk}/accounts/"
    assert "the same person?" in client.post(address, {"other": str(other.pk)}).content.decode()
    client.post(address, {"other": str(other.pk), "sure": "yes", "why": ""})
    assert Membership.objects.get(user=office.adam).accounts == {office.adam.pk, second.pk}
    refused = client.post(f"/people/{second.pk}/accounts/apart/", {"sure": "yes", "why": "I want to"})
    assert refused.status_code == 403
    assert "Nobody takes their own accounts apart" in refused.content.decode()
    actions_people.unlink_account(tenant=office.tenant, user=second, reason="a mistake", **BY)
    assert Membership.objects.filter(person_id__isnull=False).count() == 0


def test_groups_change_on_the_page_of_a_person(office: Office) -> None:
    client = office.at(office.adam)
    assert client.post("/people/groups/new/", {"name": "Finance"}).status_code == 302
    finance = Group.objects.get(name="Finance")
    address = f"/people/{office.rosa.pk}/groups/"
    asked = client.post(address, {"groups": [str(finance.pk)]}).content.decode()
    assert "Joins: Finance." in asked
    assert "Leaves: Refund desk." in asked
    client.post(address, {"groups": [str(finance.pk)], "sure": "yes"})
    assert list(Membership.objects.get(user=office.rosa).groups.all()) == [finance]


def test_duties_are_given_and_ended_with_a_reason(office: Office) -> None:
    client, address = office.at(office.adam), f"/people/{office.rosa.pk}/duties/"
    assert client.post(address, {"kind": "policy_editor", "workflow": ""}).status_code == 422
    client.post(address, {"kind": "policy_editor", "workflow": "refund-triage", "policy_version": "7"})
    duty = office.rosa.duties.get()
    assert (duty.workflow, duty.policy_version) == ("refund-triage", 7)
    ending = {"duty": str(duty.pk), "sure": "yes"}
    assert client.post(f"{address}end/", ending | {"why": ""}).status_code == 422
    client.post(f"{address}end/", ending | {"why": "handed over"})
    duty.refresh_from_db()
    assert duty.ended_at is not None


def test_an_automation_is_made_bounded_and_stopped(office: Office) -> None:
    client = office.at(office.adam)
    both = {"name": "mailer", "acts_for": str(office.rosa.pk), "acts_for_system": "helpdesk"}
    assert "not for both" in client.post("/people/automations/new/", both).content.decode()
    client.post(
        "/people/automations/new/", {"name": "mailer", "acts_for_system": "helpdesk", "workflows": "a\nb, c"}
    )
    mailer = Agent.objects.get(name="mailer")
    assert (mailer.acts_for_system, mailer.workflows, mailer.operations) == ("helpdesk", ["a", "b", "c"], [])
    client.post(f"/people/automations/{mailer.pk}/bounds/", {"any_workflow": "on", "operations": "x"})
    mailer.refresh_from_db()
    assert (mailer.acts_for_system, mailer.workflows, mailer.operations) == ("", None, ["x"])
    client.post(f"/people/automations/{mailer.pk}/deactivate/", {"sure": "yes", "why": "no longer"})
    mailer.refresh_from_db()
    assert not mailer.is_active
    assert {"agent.created", "agent.changed", "agent.deactivated"} <= set(kinds())


def test_tokens_are_issued_rotated_and_revoked_and_shown_once(office: Office) -> None:
    client = office.at(office.adam)
    page = f"/people/automations/{office.agent.pk}/"
    text = shown_once(client.post(f"{page}tokens/", {"scopes": ["runs:read"], "days": "30"}))
    row = ApiToken.objects.get(prefix=text[:12])
    assert text not in client.get(page).content.decode()
    assert "gone on for" not in client.get(page).content.decode()

    answer = client.post(f"/people/tokens/{row.pk}/rotate/", {"sure": "yes", "hours": "24"})
    newer = shown_once(answer)
    for each in (text, newer):
        header = {"Authorization": f"Bearer {each}"}
        assert Client().get("/api/v1/runs", headers=header).status_code == 200
    row.refresh_from_db()
    assert db_clock() + timedelta(hours=23) < row.expires_at < db_clock() + timedelta(hours=25)
    twice = client.post(f"/people/tokens/{row.pk}/rotate/", {"sure": "yes", "hours": "24"})
    assert (twice.status_code, "taken its place already" in twice.content.decode()) == (409, True)

    successor = ApiToken.objects.get(replaces=row)
    client.post(f"/people/tokens/{successor.pk}/revoke/", {"sure": "yes", "why": "found in a log"})
    assert Client().get("/api/v1/runs", headers={"Authorization": f"Bearer {newer}"}).status_code == 401
    assert {"token.issued", "token.rotated", "token.revoked"} <= set(kinds())


def test_a_token_is_found_by_its_beginning_and_by_no_more(office: Office) -> None:
    client = office.at(office.adam)
    assert office.token.prefix in client.get("/people/tokens/", {"q": office.text}).content.decode()
    missing = client.get("/people/tokens/", {"q": "plc_zzzzzzzz"}).content.decode()
    assert office.token.prefix not in missing
    assert "No token is here" in missing


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "a\u202eb", "{{ 7*7 }}", "'; DROP TABLE x; --"]
)
def test_hostile_names_are_data(office: Office, hostile: str) -> None:
    client = office.at(office.adam)
    User.objects.filter(pk=office.rosa.pk).update(display_name=hostile)
    Group.objects.filter(pk=office.desk.pk).update(name=hostile)
    Agent.objects.filter(pk=office.agent.pk).update(acts_for=None, acts_for_system=hostile)
    for page in (
        *PAGES,
        f"{office.rosa.pk}/",
        f"groups/{office.desk.pk}/",
        f"automations/{office.agent.pk}/",
    ):
        text = client.get(f"/people/{page}").content.decode()
        assert "<script>alert" not in text
        assert "\u202e" not in text
    for query in ({"q": hostile}, {"cursor": hostile}, {"q": "\0"}, {"group": hostile}, {"role": hostile}):
        for page in ("", "automations/", "tokens/"):
            assert client.get(f"/people/{page}", query).status_code in (200, 302), (page, query)


def test_pages_of_a_list_do_not_shift(office: Office) -> None:
    for number in range(60):
        people.agent(office.tenant, f"bot-{number:02}")
    client = office.at(office.adam)
    first = client.get("/people/automations/").content.decode()
    more = re.search(r'href="(/people/automations/\?cursor=[^"]+)" rel="next"', first)
    assert more is not None
    people.agent(office.tenant, "aaa")
    second = client.get(more[1].replace("&amp;", "&")).content.decode()
    found = set(re.findall(r"bot-\d\d", first)) | set(re.findall(r"bot-\d\d", second))
    assert len(found) == 60
    assert not set(re.findall(r"bot-\d\d", first)) & set(re.findall(r"bot-\d\d", second))


def test_who_has_not_proved_it_lately_is_asked_first(office: Office, settings: Any) -> None:
    client = office.at(office.adam)
    settings.PLACET_REAUTH_S = 0
    for method, address in (
        ("get", "/people/new/"), ("post", f"/people/{office.rosa.pk}/roles/"),
        ("post", f"/people/automations/{office.agent.pk}/tokens/"), ("post", "/people/organisation/break-glass/"),
    ):  # fmt: skip
        answer = getattr(client, method)(address, {"sure": "yes", "roles": ["admin"], "why": "x"})
        assert answer.status_code == 302
        assert answer["Location"].startswith("/account/confirm/"), address
    assert office.roles_of(office.rosa) == ["reviewer"]
