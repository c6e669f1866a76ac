"""The table of who may ask for what is the site: every address, in every role, with GET and with POST."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from access.enums import Role, Scope
from access.models import User
from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from common.ids import new_id
from config.access_matrix import OPEN, OWN, PAGES, SESSIONS, TOKENS, Roles, Row
from tests.access.people import INSTALLER
from tests.api.callers import signed_in, token_for
from tests.factories import make_group, make_user
from tests.workflows.conftest import Desk, desk
from tests.workflows.counter import open_counter
from workflows.actions.freezing import Scope as Frozen
from workflows.actions.freezing import freeze
from workflows.models import Document

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


def addresses(resolver: Any = None, prefix: str = "", space: str = "") -> Iterator[tuple[str, str, set[str]]]:
    """(name, path, names of the parts) of every address outside Django's admin."""
    for pattern in (resolver or get_resolver()).url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if not path.startswith("admin/"):
                inner = ":".join(part for part in (space, pattern.namespace) if part)
                yield from addresses(pattern, path, inner)
        elif isinstance(pattern, URLPattern):
            yield (
                f"{space}:{pattern.name}" if space else str(pattern.name),
                path,
                set(pattern.pattern.converters),
            )


EVERY = list(addresses())
PARTS = {name: parts for name, _, parts in EVERY}


def test_every_address_is_in_the_table() -> None:
    known = {*PAGES, *SESSIONS, *TOKENS, *OPEN}
    unnamed = {path for name, path, _ in EVERY if name == "None"}
    instead_of_djangos = {"admin/login/", "admin/logout/", "admin/password_change/"}
    assert unnamed == {"healthz", "readyz", "metrics"} | instead_of_djangos
    missing = {
        name for name, _, _ in EVERY if name != "None" and name not in known and not name.startswith(OWN)
    }
    assert missing == set()
    assert known - {name for name, _, _ in EVERY} == set()


def test_the_document_is_made_of_it() -> None:
    call_command("access_matrix", "--check")


class Things:
    """One of each thing that addresses name, and a person in each role."""

    def __init__(self, of: Desk) -> None:
        self.desk = of
        self.people = {role: make_user(of.tenant, f"only-{role}", roles=[role]) for role in Role}
        self.counter = open_counter(of)
        self.proposal = of.proposed(order="77")
        self.document = Document.objects.filter(tenant=of.tenant, run_id=self.proposal.run_id).first()
        self.hold = freeze(
            scope=Frozen(of.tenant.pk, target="order:9"), why="a test", by=INSTALLER, clock=db_clock
        )
        self.group = make_group(of.tenant, "Some group")

    def parts(self, names: set[str], run_id: Any = None) -> dict[str, Any]:
        assert self.document is not None
        known = {
            "proposal_id": self.proposal.pk, "run_id": run_id or self.proposal.run_id, "hold_id": self.hold_id,
            "document_id": self.document.pk, "user_id": self.desk.ben.pk, "group_id": self.group.pk,
            "command_id": self.counter.command.pk, "key": "pay", "step": "pay",
        }  # fmt: skip
        return {name: known.get(name, new_id()) for name in names}

    @property
    def hold_id(self) -> Any:
        return getattr(self.hold, "pk", None) or self.hold


@pytest.fixture
def things(desk: Desk) -> Things:
    return Things(desk)


def roles_that(things: Things, name: str, method: str) -> set[Role]:
    """Who is not turned away. What is missing, or sent without what it needs, was looked at all the same."""
    address = reverse(name, kwargs=things.parts(PARTS[name]))
    return {role for role, user in things.people.items() if not _turned_away(_ask(user, method, address))}


def _ask(user: User, method: str, address: str) -> HttpResponse:
    client = Client()
    client.force_login(user)
    answer: HttpResponse = getattr(client, method)(address)
    assert not answer.headers.get("Location", "").startswith("/sign-in/")
    assert answer.status_code < 500, (address, answer.status_code)
    return answer


def _turned_away(answer: HttpResponse) -> bool:
    return answer.status_code in (403, 405)


def expected(roles: Roles) -> set[Role]:
    return set(roles)


# What is sent without its words is looked at before the person is: who may decide is asked for with a whole decision.
ASKED_WITH_WORDS = {"approvals:decide", "approvals:say"}
AREAS = sorted({name.partition(":")[0] for name in PAGES})


def of_area(area: str) -> list[str]:
    return sorted(name for name in PAGES if name.partition(":")[0] == area)


@pytest.mark.parametrize("area", AREAS)
def test_each_role_gets_what_the_table_says(things: Things, area: str) -> None:
    for name in sorted(set(of_area(area)) - ASKED_WITH_WORDS):
        row: Row = PAGES[name]
        assert roles_that(things, name, "get") == expected(row.get), name
        assert roles_that(things, name, "post") == expected(row.post), name


def test_who_is_not_signed_in_gets_nothing(things: Things) -> None:
    for name in PAGES:
        address = reverse(name, kwargs=things.parts(PARTS[name]))
        for method in ("get", "post"):
            answer = getattr(Client(), method)(address)
            assert answer.status_code == 405 or answer["Location"].startswith("/sign-in/"), (method, name)


def test_who_reads_the_view_document(things: Things) -> None:
    for role, user in things.people.items():
        answer = signed_in(user).get(f"/proposals/{things.proposal.pk}/view")
        assert (answer.status_code == 200) == (role in SESSIONS["api-v1:get_view"].get), role


def test_only_reviewers_decide(things: Things) -> None:
    proposal = Proposal.objects.get(pk=things.proposal.pk)
    for role, user in things.people.items():
        words = {
            "digest": proposal.digest,
            "view_digest": proposal.view_digest,
            "decision": "reject",
            "reason": "no",
        }
        caller = signed_in(user)
        answer = caller.post(f"/proposals/{proposal.pk}/decisions", words)
        assert (answer.status_code == 200) == (role in SESSIONS["api-v1:decide"].post), (role, answer.content)
        if role not in SESSIONS["api-v1:decide"].post:
            assert answer.json()["code"] == "not_eligible"
    again = things.desk.proposed(order="78")
    address = reverse("approvals:decide", args=[again.pk])
    for role, user in things.people.items():
        client = Client()
        client.force_login(user)
        client.post(address, {"decision": "reject", "digest": again.digest, "view_digest": again.view_digest,
                              "reject_reason": "no", "reason_code": ""})  # fmt: skip
        again.refresh_from_db()
        assert (again.status == "rejected") == (role == Role.REVIEWER), role
        if role == Role.REVIEWER:
            again = things.desk.proposed(order="79")
            address = reverse("approvals:decide", args=[again.pk])


def test_who_says_what_became_of_it_and_who_asks_again(things: Things) -> None:
    command = things.counter.command
    for role, user in things.people.items():
        caller, allowed = signed_in(user), role in SESSIONS["api-v1:say"].post
        words = {"says": "happened", "provider_reference": "re_9", "reason": "seen"}
        answer = caller.post(f"/commands/{command.pk}/attestations", words)
        assert (answer.status_code != 403) == allowed, (role, answer.content)
        again = caller.post(f"/runs/{command.run_id}/steps/pay/ask-again", {})
        assert (again.status_code != 403) == (role in SESSIONS["api-v1:again"].post), (role, again.content)


# -- the proposer's side, on every way in ------------------------------------------------------------------------

CHANGES = sorted(name for name, row in PAGES.items() if row.post)


HEADERS = ("Bearer {token}", "Basic YTpi", "")


class Boss:
    """An admin with every role, and the token with every scope of an automation that acts for them."""

    def __init__(self, things: Things) -> None:
        user = make_user(things.desk.tenant, "boss", roles=list(Role))
        token = token_for(things.desk.tenant, "own", scopes=list(Scope.values), acts_for=user)
        self.headers = [{"Authorization": header.format(token=token)} for header in HEADERS]
        # The token alone, and beside its person's own session.
        self.clients = (Client(), signed_in(user).client)


@pytest.mark.parametrize("area", AREAS)
def test_no_token_changes_anything_on_a_page(things: Things, area: str) -> None:
    boss, names = Boss(things), [name for name in of_area(area) if name in CHANGES]
    before = Event.objects.count()
    for name in names:
        address = reverse(name, kwargs=things.parts(PARTS[name]))
        for client in boss.clients:
            for headers in boss.headers:
                answer = client.post(address, {"sure": "yes", "why": "x"}, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (403, "token_cannot_decide"), name
    assert Event.objects.count() == before


REFUSALS = {
    "api-v1:decide": "token_cannot_decide", "api-v1:say": "token_cannot_attest", "api-v1:again": "token_cannot_attest",
    "api-v1:get_view": "token_cannot_decide",
}  # fmt: skip


def test_no_token_decides_or_attests_on_the_api(things: Things) -> None:
    assert set(REFUSALS) == set(SESSIONS)
    boss = Boss(things)
    for name, code in REFUSALS.items():
        address = reverse(name, kwargs=things.parts(PARTS[name], things.counter.command.run_id))
        for client in boss.clients:
            for headers in boss.headers:
                if SESSIONS[name].get:
                    answer = client.get(address, headers=headers)
                else:
                    answer = client.post(address, {}, headers=headers, content_type="application/json")
                assert (answer.status_code, answer.json()["code"]) == (403, code), (name, answer.content)


def test_no_other_route_of_the_api_changes_anything_for_a_session(things: Things) -> None:
    """What a token may do, a session may not: whoever asks is one of both, never both."""
    client = signed_in(make_user(things.desk.tenant, "boss", roles=list(Role))).client
    for name in TOKENS:
        answer = client.post(
            reverse(name, kwargs=things.parts(PARTS[name])), {}, content_type="application/json"
        )
        assert answer.status_code in (401, 405), name
