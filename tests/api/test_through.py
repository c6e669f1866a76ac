"""Through which token, session or endpoint somebody came: in each event, in what they asked for."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.db.models import QuerySet
from django.test import Client

from access.actions import revoke_token
from access.actions_agents import rotate_token
from access.enums import Role
from access.management.operator import at_the_console
from access.models import Agent, ApiToken
from approvals.models import Proposal
from audit.filters import HistoryFilter
from audit.models import Event
from audit.selectors import events
from audit.through import through_names, words_for
from common.clock import db_clock
from tests import factories
from tests.api.callers import Caller, as_json, automation, proposal_body, run_body, signed_in
from tests.api.conftest import World
from tests.api.test_hooks import Sender, take_in
from tests.workflows.conftest import person
from tests.workflows.later import as_superuser
from tests.workflows.toy import ToyPay
from workflows.actions.editing import Edit, edit
from workflows.let_through import Asked, let_through
from workflows.models import Run

pytestmark = pytest.mark.django_db
NOBODY = "token:0199d3f0-0000-7000-8000-000000000000"


class Two:
    """Two tokens of one automation: which of them was used, only the history can say."""

    def __init__(self, world: World) -> None:
        self.world, self.tenant = world, world.desk.tenant
        self.first = ApiToken.objects.get(tenant=self.tenant)
        text, self.second = rotate_token(
            token=self.first, life=timedelta(days=9), overlap=timedelta(days=1), by=at_the_console(), clock=db_clock
        )  # fmt: skip
        self.one, self.two = world.agent, automation(text)

    def propose(self, caller: Caller, key: str, **changes: Any) -> dict[str, Any]:
        made: dict[str, Any] = as_json(caller.post("/proposals", proposal_body(key, **changes)), 201)
        return made

    def found(self, token: ApiToken) -> list[str]:
        """The orders of what it let through."""
        rows = let_through(self.tenant.pk, Asked(through=token.word))
        return [row.target.removeprefix("order:") for row in rows]


@pytest.fixture
def two(world: World) -> Two:
    return Two(world)


def arguments(order: str) -> dict[str, str]:
    return {"order": order, "amount": "10.00", "currency": "EUR"}


def throughs(**which: Any) -> set[str | None]:
    return set(Event.objects.filter(**which).values_list("through", flat=True))


def test_each_event_names_the_token_that_was_used(two: Two) -> None:
    made = two.propose(two.one, "k-1")
    other = two.propose(two.two, "k-2", source={"system": "t", "event_id": "2"}, arguments=arguments("2"))
    assert throughs(run_id=made["run_id"], via="token") == {two.first.word}
    assert throughs(run_id=other["run_id"], via="token") == {two.second.word}
    assert {event.performed_by for event in Event.objects.filter(via="token")} == {"api:intake"}
    as_json(two.two.post(f"/proposals/{made['id']}/withdraw", {"reason": "A mistake."}))
    taken_back = Event.objects.get(kind="proposal.withdrawn", subject_id=made["id"])
    assert taken_back.through == two.second.word


def test_no_event_holds_more_of_a_token_than_its_id(two: Two) -> None:
    two.propose(two.one, "k-1")
    secret = two.one.headers["Authorization"].removeprefix("Bearer ")
    for event in Event.objects.all():
        assert secret[:12] not in f"{event.through}{event.body}{event.reason}"


def test_what_one_token_let_through_is_not_what_the_other_did(two: Two) -> None:
    for caller, order in ((two.one, "1"), (two.two, "2"), (two.one, "3"), (two.two, "4")):
        source = {"system": "t", "event_id": order}
        made = two.propose(caller, f"k-{order}", source=source, arguments=arguments(order))
        if order != "4":
            as_json(two.world.decide(made))
    assert (two.found(two.first), two.found(two.second)) == (["3", "1"], ["2"])


def test_what_workers_propose_in_a_run_is_of_the_token_that_started_it(two: Two) -> None:
    started = as_json(two.two.post("/runs", run_body()), 201)
    two.world.desk.advance()
    run, proposal = Run.objects.get(pk=started["run_id"]), Proposal.objects.get()
    assert run.requested_through == proposal.proposed_through == two.second.word
    two.world.desk.decide(proposal)
    two.world.desk.work()
    assert two.found(two.second) == ["1042"]
    assert two.found(two.first) == []
    assert throughs(run_id=run.pk, via="worker") == {""}  # the worker is named by itself


def test_a_repeated_event_names_who_repeated_it_and_the_run_stays_whose_it_was(two: Two) -> None:
    started = as_json(two.one.post("/runs", run_body()), 201)
    again = as_json(two.two.post("/runs", run_body()), 200)
    assert again["run_id"] == started["run_id"]
    assert Event.objects.get(kind="run.duplicate_prevented").through == two.second.word
    assert Run.objects.get().requested_through == two.first.word


def test_each_run_of_a_bulk_is_of_the_token_that_sent_it(two: Two) -> None:
    as_json(two.one.post("/runs", [run_body("1"), run_body("2")]))
    as_json(two.two.post("/runs", [run_body("2"), run_body("3")]))
    told = Run.objects.order_by("source_event_id").values_list("source_event_id", "requested_through")
    assert [through for _, through in told] == [two.first.word, two.first.word, two.second.word]
    assert throughs(kind="run.queued") == {two.first.word, two.second.word}


def test_a_version_that_a_reviewer_edited_stays_of_the_token(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyPay, "editable", ("amount",))
    desk, made = two.world.desk, two.propose(two.two, "k-1")
    new = edit(
        tenant_id=two.tenant.pk, proposal_id=made["id"], edit=Edit(made["digest"], {"amount": "8.00"}),
        by=person(desk.ada), clock=db_clock,
    )  # fmt: skip
    assert (new.edited_by_id, new.proposed_through) == (desk.ada.pk, two.second.word)
    assert throughs(kind="proposal.made", subject_id=new.pk) != {
        two.second.word
    }  # it was her, by her session
    desk.decide(new, user=desk.ben)
    assert two.found(two.second) == ["1042"]


def test_a_newer_version_is_of_the_token_that_sent_it(two: Two) -> None:
    old = two.propose(two.one, "k-1")
    newer = two.propose(
        two.two, "k-2", supersedes=old["id"], arguments=arguments("1042") | {"amount": "9.00"}
    )
    assert Run.objects.get().requested_through == two.first.word
    assert Proposal.objects.get(pk=newer["id"]).proposed_through == two.second.word
    as_json(two.world.decide(newer))
    assert (two.found(two.first), two.found(two.second)) == ([], ["1042"])


def test_a_revoked_and_an_expired_token_are_found_like_any_other(two: Two) -> None:
    as_json(two.world.decide(two.propose(two.one, "k-1")))
    revoke_token(token=two.first, by=at_the_console(), clock=db_clock)
    assert two.found(two.first) == ["1042"]
    as_superuser("UPDATE access_apitoken SET revoked_at = NULL, expires_at = now() - interval '1 day'")
    rows = let_through(two.tenant.pk, Asked(through=two.first.prefix))
    assert [row.target for row in rows] == ["order:1042"]


def test_a_person_is_named_with_the_session_and_nobody_signs_in_with_it(world: World) -> None:
    made = world.proposed()
    as_json(world.decide(made))
    [handle] = throughs(kind="proposal.vote")
    key = world.ada.client.session.session_key
    assert handle is not None
    assert handle.startswith("session:")
    assert len(handle) == len("session:") + 16
    assert handle.removeprefix("session:") not in key
    other = signed_in(world.desk.ada)
    as_json(world.decide(world.proposed("k-2", arguments=arguments("2")), person=other))
    assert len(throughs(kind="proposal.vote")) == 2  # another session of the same person
    thief = Client()
    thief.cookies["sessionid"] = handle.removeprefix("session:")
    assert thief.get("/review/").status_code == 302


def test_what_came_by_a_webhook_names_the_endpoint(world: World) -> None:
    sender = Sender(world.desk)
    assert sender.post().status_code == 202
    take_in()
    assert Run.objects.get().requested_through == f"endpoint:{sender.endpoint.pk}"
    assert throughs(kind="delivery.received") == {sender.endpoint.word}
    assert throughs(kind="run.queued") == {sender.endpoint.word}
    assert Run.objects.get().on_behalf_of == f"user:{world.desk.ben.pk}"


# -- what others learn of it --------------------------------------------------------------------------------------


def test_of_another_organisation_neither_prefix_nor_id_finds_anything(two: Two) -> None:
    as_json(two.world.decide(two.propose(two.one, "k-1")))
    other = Agent.objects.get(name="intake", tenant__slug="lagoon").tenant
    for text in (two.first.prefix, str(two.first.pk)):
        assert words_for(other.pk, text) == words_for(other.pk, "plc_neverwas1") == []
    assert through_names(other.pk, [two.first.word]) == {}
    eve = Client()
    eve.force_login(factories.make_user(other, "aude", roles=[Role.ADMIN]))
    pages = [
        [eve.get(page, {"through": text}).content.decode() for text in (asked, unknown)]
        for asked, unknown in ((two.first.word, NOBODY), (two.first.prefix, "plc_neverwas"))
        for page in ("/history/", "/history/let-through/")
    ]
    for (theirs, unknown), asked in zip(pages, [two.first.word] * 2 + [two.first.prefix] * 2, strict=True):
        given = "plc_neverwas" if asked == two.first.prefix else NOBODY
        assert _without(theirs, asked) == _without(unknown, given)
    foreign = as_json(two.world.foreign.get("/audit/events", through=two.first.word))
    assert foreign["events"] == []


def _without(page: str, asked: str) -> str:
    """The page without what was asked for, and what is new on each."""
    page = re.sub(
        r'(nonce|value|datetime)="[^"]*"|csrfmiddlewaretoken[^>]*|\d\d:\d\d:\d\d|X-CSRFToken[^}]*', "", page
    )
    return page.replace(asked, "…").replace(asked.replace(":", "%3A"), "…")


def test_the_api_gives_it_and_filters_by_it(two: Two) -> None:
    two.propose(two.one, "k-1")
    made = two.propose(two.two, "k-2", source={"system": "t", "event_id": "2"}, arguments=arguments("2"))
    found = as_json(two.one.get("/audit/events", through=two.second.word))["events"]
    assert {event["through"] for event in found} == {two.second.word}
    assert {event["run_id"] for event in found} == {made["run_id"]}
    assert as_json(two.one.get("/audit/events", through=NOBODY))["events"] == []


# -- how it is found ----------------------------------------------------------------------------------------------


def _plan(found: QuerySet[Any]) -> str:
    with connections["owner"].cursor() as cursor:  # who does not own a table cannot analyze it
        cursor.execute("ANALYZE audit_event, approvals_proposal")
    return str(found[:51].explain())


def test_a_rare_token_is_found_by_an_index_among_many_events(two: Two) -> None:
    as_json(two.world.decide(two.propose(two.one, "k-1")))
    as_superuser(
        "INSERT INTO audit_event (id, tenant_id, kind, subject_type, subject_id, from_state, to_state, performed_by,"
        " on_behalf_of, via, owner, reason, request_id, digest, body, at, xid, through)"
        " SELECT gen_random_uuid(), %s, 'run.queued', 'run', gen_random_uuid(), '', '', 'api:intake', '', 'token',"
        " 'automation', '', '', '', '{}', now(), 1, %s FROM generate_series(1, 5000)",
        two.tenant.pk, two.second.word,
    )  # fmt: skip
    for asked in (two.first.word, two.first.prefix):
        form = HistoryFilter({"through": asked})
        plan = _plan(events(two.tenant.pk, form.filters(db_clock())).filter(form.words(two.tenant.pk)))
        assert "Index Scan Backward using audit_event_through" in plan, plan


def test_what_a_rare_token_let_through_is_found_by_an_index(two: Two) -> None:
    as_json(two.world.decide(two.propose(two.one, "k-1")))
    run = factories.make_run(two.tenant)
    made = [factories.make_proposal(run, status="approved", target="order:9")]
    as_superuser("ALTER TABLE approvals_proposal DISABLE TRIGGER ALL")
    apart = ("id", "run_id", "proposed_through")
    columns = [field.column for field in Proposal._meta.concrete_fields if field.column not in apart]
    names = ", ".join(columns)
    as_superuser(
        f"INSERT INTO approvals_proposal (id, run_id, proposed_through, {names})"
        f" SELECT gen_random_uuid(), gen_random_uuid(), %s, {names} FROM approvals_proposal, generate_series(1, 3000)"
        " WHERE id = %s", two.second.word, made[0].pk,
    )  # fmt: skip
    as_superuser("ALTER TABLE approvals_proposal ENABLE TRIGGER ALL")
    plan = _plan(let_through(two.tenant.pk, Asked(through=two.first.word)))
    assert "Index Scan using approvals_proposal_through" in plan, plan
