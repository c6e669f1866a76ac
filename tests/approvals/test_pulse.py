"""The pulse: what open pages are told from memory, that nothing is lost, and who is told nothing any more."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from access.enums import Role
from access.models import User
from approvals import actions_claims
from approvals.actions import Submission, decide, withdraw
from approvals.models import Claim, Proposal
from approvals.pulse import middleware, reading
from approvals.pulse.listener import listener
from approvals.pulse.memory import FRESH_S, KEPT_S, MOST_TOLD, Change, Memory
from approvals.pulse.places import sealed
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.ids import new_id
from common.models import Tenant
from tests import factories, rows

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
PATH = "/review/pulse/"


class Clock:
    """A monotonic clock that is put forward."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Memory:
    """A process that has just begun."""
    fresh = Memory(clock=clock)
    monkeypatch.setattr(listener, "memory", fresh)
    monkeypatch.setattr(middleware, "memory", fresh)
    monkeypatch.setattr("approvals.views_queue.memory", fresh)
    monkeypatch.setattr("approvals.templatetags.pulse.memory", fresh)
    return fresh


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def desk(client: Client, reviewer: User) -> Client:
    client.force_login(reviewer)
    return client


def person(user: User) -> Actor:
    return Actor(f"user:{user.pk}", Via.SESSION, Owner.PERSON, user_id=user.pk)


def hold(proposal: Proposal, user: User, *, take_over: bool = False) -> Claim:
    return actions_claims.hold(
        tenant_id=proposal.tenant_id,
        proposal_id=proposal.pk,
        take_over=take_over,
        by=person(user),
        clock=db_clock,
    )


def decide_as(proposal: Proposal, user: User, kind: str) -> None:
    """What a colleague does elsewhere."""
    sent = Submission(
        kind=kind, digest=proposal.digest, view_digest=proposal.view_digest, reason="No.", reason_code="other"
    )
    decide(
        tenant_id=proposal.tenant_id,
        proposal_id=proposal.pk,
        submission=sent,
        by=person(user),
        clock=db_clock,
    )


def end(proposal: Proposal) -> None:
    """Taken back by whoever proposed it: the shortest real change."""
    by = Actor(proposal.proposed_by, Via.TOKEN, Owner.PERSON)
    withdraw(tenant_id=proposal.tenant_id, proposal_id=proposal.pk, reason="", by=by, clock=db_clock)


def ask(client: Client, since: str = "", **more: str) -> Any:
    return client.get(PATH, {"since": since, **more}, headers=HTMX)


def place(client: Client) -> str:
    return str(ask(client)["X-Placet-Pulse"])


def told(answer: Any) -> list[tuple[str, str]]:
    return [(change["is"], change["id"]) for change in answer.json()["changes"]]


def test_nothing_happened_is_204_and_a_place_to_go_on_from(desk: Client) -> None:
    answer = ask(desk, place(desk))
    assert answer.status_code == 204
    assert re.fullmatch("[0-9a-f]{32}", answer["X-Placet-Pulse"])
    assert answer["X-Placet-Pulse"] != place(desk), "nobody counts what others do"
    assert answer["Cache-Control"] == "no-store"


def test_a_change_is_told_with_who_did_it_and_how_it_is_shown(
    desk: Client, tenant: Tenant, reviewer: User
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    begun = place(desk)
    hold(proposal, reviewer)
    end(proposal)
    answer = ask(desk, begun)
    held, over = answer.json()["changes"]
    assert (held["is"], held["id"], held["who"], held["taken"]) == (
        "held",
        str(proposal.pk),
        "Ilse V.",
        False,
    )
    assert (over["is"], over["word"], over["tone"]) == ("over", "Withdrawn", "mute")
    assert answer.json()["waiting"] == 0
    assert ask(desk, answer["X-Placet-Pulse"]).status_code == 204


def test_a_known_session_is_answered_without_a_statement(
    desk: Client, tenant: Tenant, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = place(desk)
    monkeypatch.setattr(listener, "attend", lambda: None)  # which looks here, and in production in its thread
    with django_assert_num_queries(0):
        assert ask(desk, begun).status_code == 204


def test_a_look_at_a_quiet_time_is_one_statement(memory: Memory, django_assert_num_queries: Any) -> None:
    reading.look(memory)
    with django_assert_num_queries(1):
        reading.look(memory)


def test_what_commits_late_is_told_although_later_ones_were(
    desk: Client, tenant: Tenant, reviewer: User
) -> None:
    """A transaction that began first may commit last: places are not handed out in the order of commits."""
    first, second = (factories.make_proposal(tenant=tenant) for _ in range(2))
    begun = place(desk)
    slow = connections["owner"].copy("slow")
    try:
        with slow.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT pg_current_xact_id()")  # a number, before that of the change below
            end(second)
            answer = ask(desk, begun)
            assert told(answer) == [("over", str(second.pk))]
            again = ask(desk, answer["X-Placet-Pulse"])
            assert again.status_code == 204, "what was told already is no news"
            cursor.execute("COMMIT")
        end(first)
        assert ("over", str(first.pk)) in told(ask(desk, again["X-Placet-Pulse"]))
    finally:
        slow.close()


def test_a_process_that_began_later_tells_what_it_missed(
    desk: Client, tenant: Tenant, memory: Memory, clock: Clock
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    begun = place(desk)
    end(proposal)
    restarted = Memory(clock=clock)
    memory.__dict__.update(restarted.__dict__)
    answer = ask(desk, begun)
    assert told(answer) == [("over", str(proposal.pk))]
    assert answer.json()["stale"] is False


def test_a_page_that_slept_for_too_long_is_told_that_all_may_be_different(
    desk: Client, tenant: Tenant, memory: Memory, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    begun = place(desk)
    end(proposal)
    ask(desk, begun)
    clock.now += KEPT_S + 1
    monkeypatch.setattr(reading, "MOST_READ", 1)
    assert ask(desk, begun).json()["stale"] is True
    for strange in ("9" * 32, "f" * 32, "0" * 31, "\u0663" * 32, f"{begun}.zz"):
        assert ask(desk, strange).json()["stale"] is True
    assert ask(desk, "nonsense").json()["stale"] is True


def test_very_many_changes_are_told_as_one(memory: Memory, tenant: Tenant) -> None:
    reading.look(memory)
    change = Change(new_id(), memory.place, tenant.pk, {"is": "new"}, memory.clock())
    many = [replace(change, event=new_id()) for _ in range(MOST_TOLD + 1)]
    memory.learn(memory.place, many, {})
    answer = memory.told(tenant.pk, sealed(memory.place))
    assert (answer.stale, answer.changes) == (True, ())


def test_another_tenant_hears_nothing(desk: Client, tenant: Tenant) -> None:
    begun = place(desk)
    other = factories.make_proposal(tenant=factories.make_tenant("elsewhere"))
    end(other)
    answer = ask(desk, begun)
    assert answer.status_code == 204
    assert str(other.pk) not in answer.content.decode()


# -- whoever may not be told any more ------------------------------------------------------------------------


def leave_group(user: User) -> None:
    user.memberships.get().groups.clear()


LOSSES: dict[str, Any] = {
    "account": lambda user: User.objects.filter(pk=user.pk).update(is_active=False),
    "membership": lambda user: user.memberships.update(is_active=False),
    "password": lambda user: User.objects.filter(pk=user.pk).update(password="!other"),
    "session": lambda user: connections["owner"].cursor().execute("DELETE FROM django_session"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_whoever_loses_their_rights_is_turned_away_at_the_next_look(
    desk: Client, tenant: Tenant, reviewer: User, memory: Memory, loss: str
) -> None:
    begun = place(desk)
    assert len(memory.sessions) == 1
    LOSSES[loss](reviewer)
    listener.attend()
    assert memory.sessions == {}
    answer = ask(desk, begun)
    assert (answer.status_code, answer.headers.get("HX-Redirect", "")[:9]) == (200, "/sign-in/")
    assert answer.content == b""


@pytest.mark.parametrize("change", ["role", "group"])
def test_other_rights_make_the_page_load_anew(
    desk: Client, tenant: Tenant, reviewer: User, memory: Memory, change: str
) -> None:
    membership = reviewer.memberships.get()
    membership.groups.add(factories.make_group(tenant), through_defaults={"tenant": tenant})
    begun = place(desk)
    [rights] = {known.rights for known in memory.sessions.values()}
    assert ask(desk, begun, rights=rights).status_code == 204
    if change == "role":
        reviewer.memberships.update(roles=[Role.OPERATOR])
    else:
        leave_group(reviewer)
    listener.attend()
    assert ask(desk, begun, rights=rights).json()["rights"] is True


def test_a_session_is_looked_at_as_a_whole_again_before_it_ends(
    desk: Client, memory: Memory, clock: Clock
) -> None:
    place(desk)
    clock.now += 10_000
    assert memory.present(next(iter(memory.sessions), "")) is None


def test_a_memory_that_nobody_fills_tells_nothing(
    desk: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = place(desk)
    monkeypatch.setattr(reading, "look", lambda memory: None)
    clock.now += FRESH_S + 1
    assert ask(desk, begun).status_code == 503


def test_strangers_and_tokens_are_told_nothing(client: Client) -> None:
    assert ask(client).headers["HX-Redirect"].startswith("/sign-in/")
    assert client.get(PATH).status_code == 302
    assert client.post(PATH).status_code == 405


def test_pages_begin_to_listen_where_they_were_read(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    for address in ("/review/", f"/review/{proposal.pk}/"):
        html = desk.get(address).content.decode()
        assert 'data-pulse="/review/pulse/"' in html
        assert 'data-since="' in html


# -- claims --------------------------------------------------------------------------------------------------


def test_a_claim_is_courtesy_and_lapses(tenant: Tenant, reviewer: User) -> None:
    other = factories.make_user(tenant, "tomas", display_name="Tomás R.")
    proposal = factories.make_proposal(tenant=tenant)
    held = hold(proposal, reviewer)
    assert held.until - held.since == timedelta(minutes=10)
    with pytest.raises(actions_claims.HeldByAnother) as refused:
        hold(proposal, other)
    assert refused.value.details == {"holder": "Ilse V."}
    Claim.objects.update(since=rows.now() - timedelta(hours=1), until=rows.now() - timedelta(minutes=1))
    assert hold(proposal, other).user_id == other.pk
    taken = hold(proposal, reviewer, take_over=True)
    assert taken.user_id == reviewer.pk
    assert Claim.objects.count() == 1
    kinds = reading._fetch("SELECT kind, body->>'from' FROM audit_event ORDER BY at", [])
    assert kinds == [
        ("proposal.held", None), ("proposal.held", None), ("proposal.taken_over", f"user:{other.pk}"),
    ]  # fmt: skip


def test_giving_back_and_holding_on_are_the_holders(tenant: Tenant, reviewer: User) -> None:
    other = factories.make_user(tenant, "tomas")
    proposal = factories.make_proposal(tenant=tenant)
    hold(proposal, reviewer)
    for act in (actions_claims.release, actions_claims.renew):
        assert not act(tenant_id=tenant.pk, proposal_id=proposal.pk, by=person(other), clock=db_clock)
    later = db_clock() + timedelta(minutes=5)
    ours = {"tenant_id": tenant.pk, "proposal_id": proposal.pk, "by": person(reviewer)}
    assert actions_claims.renew(**ours, clock=lambda: later)
    assert Claim.objects.get().until > rows.now() + timedelta(minutes=14)
    assert actions_claims.release(**ours, clock=db_clock)
    assert not Claim.objects.get().is_held(db_clock())


def test_the_page_says_who_reads_it_and_lets_others_go_on(desk: Client, tenant: Tenant) -> None:
    other = factories.make_user(tenant, "tomas", display_name="Tomás R.")
    proposal = factories.make_proposal(tenant=tenant)
    hold(proposal, other)
    html = desk.get(f"/review/{proposal.pk}/").content.decode()
    assert "<b>Tomás R.</b> is reading this. You may decide all the same." in html
    assert 'name="decision"' in html
    assert "Held by <bdi>Tomás R.</bdi>" in desk.get("/review/").content.decode()
    address = f"/review/{proposal.pk}/hold/"
    refused = desk.post(address, {"act": "hold"})
    assert (refused.status_code, "held_by_another" in refused.content.decode()) == (409, True)
    taken = desk.post(address, {"act": "take_over"}, headers=HTMX).content.decode()
    assert "You hold it until" in taken
    back = desk.post(address, {"act": "release"})
    assert (back.status_code, back["Location"]) == (302, f"/review/{proposal.pk}/")
    assert "Hold it while you read" in desk.get(address).content.decode()


def test_whoever_could_not_decide_it_does_not_hold_it(client: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    client.force_login(factories.make_user(tenant, "olga", roles=[Role.OPERATOR]))
    assert "Hold it" not in client.get(f"/review/{proposal.pk}/").content.decode()
    assert client.post(f"/review/{proposal.pk}/hold/", {"act": "hold"}, headers=HTMX).status_code == 403
    assert not Claim.objects.exists()


def test_what_is_over_is_held_by_nobody(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant, status="rejected")
    answer = desk.post(f"/review/{proposal.pk}/hold/", {"act": "hold"}, headers=HTMX)
    assert (answer.status_code, "already_decided" in answer.content.decode()) == (409, True)
