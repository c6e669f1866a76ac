"""The history through its URLs: who may read it, what filters find, what proves it; reading changes nothing."""

import re
from typing import Any

import pytest
from django.db import connections, transaction
from django.test import Client

from access.enums import Role
from access.models import User
from audit.actions import record
from audit.actors import Actor, Owner, Via
from audit.checks import last_check
from audit.models import Event, Seal
from audit.sealer import seal
from common.clock import db_clock
from common.ids import new_id
from common.models import Tenant
from tests import factories
from tests.pages import timeless

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
WORKER = Actor(performed_by="worker:w1", via=Via.WORKER, owner=Owner.WORKER)


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def auditor(tenant: Tenant, client: Client) -> Client:
    client.force_login(factories.make_user(tenant, "aude", roles=[Role.AUDITOR], display_name="Aude L."))
    return client


def write(tenant: Tenant, kind: str = "command.sent", *, by: Actor = WORKER, **more: Any) -> Event:
    fields = {"subject_type": kind.partition(".")[0], "subject_id": new_id(), "run_id": new_id()} | more
    with transaction.atomic():
        pk = record(by=by, kind=kind, tenant_id=tenant.pk, **fields)
    return Event.objects.get(pk=pk)


def page(client: Client, address: str, status: int = 200, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == status
    return answer.content.decode()


def listed(html: str) -> list[str]:
    return re.findall(r'<tbody id="e-([0-9a-f-]+)"', html)


def by_person(user: User) -> Actor:
    return Actor(performed_by=f"user:{user.pk}", via=Via.SESSION, owner=Owner.PERSON, user_id=user.pk)


# -- who ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", list(Role))
def test_only_auditors_and_admins_read_the_history(tenant: Tenant, client: Client, role: Role) -> None:
    client.force_login(factories.make_user(tenant, roles=[role]))
    event = write(tenant)
    allowed = role in (Role.AUDITOR, Role.ADMIN)
    for address in ("/history/", f"/history/{event.pk}/"):
        assert client.get(address).status_code == (200 if allowed else 403)
    assert client.post("/history/check/").status_code == (302 if allowed else 403)


def test_without_a_session_one_is_asked_to_sign_in(client: Client) -> None:
    assert client.get("/history/").headers["Location"] == "/sign-in/?next=/history/"


def test_a_search_of_others_is_a_search_for_runs(tenant: Tenant, client: Client) -> None:
    client.force_login(factories.make_user(tenant, roles=[Role.REVIEWER]))
    assert client.get("/history/", {"q": "order 42"}).headers["Location"] == "/runs/?q=order+42"


# -- the list -------------------------------------------------------------------------------------------------


def test_events_stand_newest_first_with_names_instead_of_ids(auditor: Client, tenant: Tenant) -> None:
    ilse = factories.make_user(tenant, "ilse", display_name="Ilse V.")
    first, second = (
        write(tenant),
        write(tenant, "proposal.approved", by=by_person(ilse), from_state="pending", to_state="approved"),
    )
    html = page(auditor, "/history/")
    assert listed(html) == [str(second.pk), str(first.pk)]
    assert "Ilse V." in html
    assert "Waiting for approval → Approved" in html
    assert "worker w1" in html


@pytest.mark.parametrize("count", [1, 3])
def test_the_list_asks_the_database_equally_often_however_long_it_is(
    auditor: Client, tenant: Tenant, count: int, django_assert_num_queries: Any
) -> None:
    user = factories.make_user(tenant)
    for _ in range(count):
        write(tenant, by=by_person(user))
    with django_assert_num_queries(31):
        auditor.get("/history/")


def test_filters_find_what_they_name_and_nothing_else(auditor: Client, tenant: Tenant) -> None:
    ilse = factories.make_user(tenant, "ilse", display_name="Ilse V.")
    wanted = write(
        tenant, "proposal.vote", by=by_person(ilse), digest="ab12cd34" + "0" * 56, reason="too_much"
    )
    write(tenant)
    for query in (
        {"run": wanted.run_id}, {"subject": wanted.subject_id}, {"kind": "proposal."}, {"kind": "proposal.vote"},
        {"digest": wanted.digest}, {"digest": f"sha256:{wanted.digest}"}, {"actor": f"user:{ilse.pk}"}, {"q": "ilse"},
        {"q": "Ilse V."}, {"q": str(wanted.run_id)}, {"q": str(wanted.pk)}, {"q": "ab12 cd34"}, {"q": "proposal.v"},
        {"q": "too_much"}, {"q": str(wanted.run_id)[:13], "kind": "proposal."}, {"kind": "proposal.", "when": "hour"},
        {"kind": "proposal.", "since": "2020-01-01T00:00"},
    ):  # fmt: skip
        html = auditor.get("/history/", query).content.decode()
        assert listed(html) == [str(wanted.pk)], query
    for query in (
        {"until": "2020-01-01T00:00"},
        {"q": "nonsense"},
        {"kind": "no.such"},
        {"digest": "ab12cd34"},
    ):
        html = auditor.get("/history/", query).content.decode()
        assert "No event fits these filters" in html, query


def test_an_order_finds_the_history_of_its_runs(auditor: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant, target="order:4711")
    wanted = write(tenant, run_id=proposal.run_id)
    write(tenant)
    for words in ("4711", "order:4711"):
        assert listed(auditor.get("/history/", {"q": words}).content.decode()) == [str(wanted.pk)]


def test_a_filter_that_cannot_be_understood_says_so_and_asks_for_nothing(
    auditor: Client, tenant: Tenant
) -> None:
    write(tenant)
    html = auditor.get(
        "/history/", {"run": "nonsense", "since": "yesterday", "cursor": "x", "when": "x"}
    ).content.decode()
    assert len(listed(html)) == 1
    assert "This is not an id." in html


def test_what_is_asked_for_stands_there_with_a_way_without_it(auditor: Client, tenant: Tenant) -> None:
    html = auditor.get("/history/", {"kind": "command.", "actor": "worker:<b>\u202e"}).content.decode()
    assert 'class="token out" href="/history/?kind=command."' in html
    assert "worker:&lt;b&gt;" in html
    assert "⟦U+202E⟧" in html


def test_pages_hold_every_event_once_while_new_ones_come_in(
    auditor: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.cursors.page.__kwdefaults__", {"cursor": "", "size": 2})
    made = [str(write(tenant).pk) for _ in range(5)]
    found: list[str] = []
    address = "/history/"
    while address:
        html = page(auditor, address)
        found += listed(html)
        write(tenant)
        older = re.search(r'href="([^"]+)" rel="next"', html)
        address = older[1].replace("&amp;", "&") if older else ""
    assert found == made[::-1]


def test_the_list_alone_is_the_answer_to_a_swap(auditor: Client, tenant: Tenant) -> None:
    write(tenant)
    fragment = page(auditor, "/history/?kind=command.", **HTMX, **{"HX-Target": "events"})
    assert "<!doctype" not in fragment
    assert "Check the whole chain" not in fragment
    token = re.compile(r'(csrfmiddlewaretoken" value=")[^"]*')  # masked anew in each answer
    whole = page(auditor, "/history/?kind=command.")
    assert timeless(token.sub(r"\1", fragment)) in timeless(token.sub(r"\1", whole))


# -- one event ------------------------------------------------------------------------------------------------


def test_a_row_opens_in_place_and_closes_again(auditor: Client, tenant: Tenant) -> None:
    event = write(tenant, from_state="claimed", to_state="sent", body={"key": "k1"})
    swap = HTMX | {"HX-Target": f"e-{event.pk}"}
    opened = page(auditor, f"/history/{event.pk}/", **swap)
    assert 'aria-expanded="true"' in opened
    assert f"/history/{event.pk}/?open=no" in opened
    assert "Claimed → Sent" in opened
    closed = page(auditor, f"/history/{event.pk}/?open=no", **swap)
    assert timeless(closed) in timeless(page(auditor, "/history/"))
    assert "<!doctype" in page(auditor, f"/history/{event.pk}/").lower()


def test_a_sealed_event_is_proved_by_its_own_bytes_and_its_neighbours(
    auditor: Client, tenant: Tenant
) -> None:
    events = [write(tenant, reason="<b>\u202e") for _ in range(3)]
    seal(db_clock)
    html = page(auditor, f"/history/{events[1].pk}/")
    for text in ("Hash fits the stored event", "Follows event 1", "Event 3 follows it"):
        assert re.search(rf"{text}</span>.*?</svg>yes", html), text
    assert "&quot;seq&quot;:2" in html
    assert "<b>\u202e" not in html
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE audit_event SET kind = 'other.kind' WHERE id = %s", [events[1].pk])
    html = page(auditor, f"/history/{events[1].pk}/")
    assert re.search(r"Hash fits the stored event</span>.*?</svg>no", html)


def test_an_event_that_is_not_sealed_yet_says_so(auditor: Client, tenant: Tenant) -> None:
    html = page(auditor, f"/history/{write(tenant).pk}/")
    assert "not sealed yet" in html
    assert "within a few seconds" in html


# -- the chain ------------------------------------------------------------------------------------------------


def test_the_page_says_whether_the_chain_holds(auditor: Client, tenant: Tenant) -> None:
    assert "Nothing is sealed yet" in page(auditor, "/history/")
    events = [write(tenant) for _ in range(3)]
    seal(db_clock)
    html = page(auditor, "/history/")
    assert "The chain holds up to event 3" in html
    assert "has not been checked on the record yet" in html
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE audit_event SET reason = 'other' WHERE id = %s", [events[1].pk])
    html = page(auditor, "/history/")
    assert "The chain does not hold at event 2" in html
    assert 'class="proof" data-tone="bad"' in html


def test_checking_the_whole_chain_is_written_down_in_it(auditor: Client, tenant: Tenant) -> None:
    for _ in range(3):
        write(tenant)
    seal(db_clock)
    assert auditor.get("/history/check/").status_code == 405
    html = auditor.post("/history/check/", follow=True).content.decode()
    assert "All 3 sealed events were recomputed. The chain holds." in html
    assert "by Aude L., 3 events: it held." in html
    found = last_check(tenant.pk)
    assert found is not None and (found.holds, found.sealed) == (True, 3)
    with connections["owner"].cursor() as cursor:
        cursor.execute("DELETE FROM audit_event WHERE id = %s", [Seal.objects.get(seq=1).event_id])
    html = auditor.post("/history/check/", follow=True).content.decode()
    assert "There is a seal and no event." in html
    found = last_check(tenant.pk)
    assert found is not None and not found.holds


# -- walls ----------------------------------------------------------------------------------------------------


def test_nothing_of_another_tenant_is_shown_found_or_counted(auditor: Client, tenant: Tenant) -> None:
    other = factories.make_tenant()
    ada = factories.make_user(other, display_name="Other Person")
    event = write(other, by=by_person(ada), digest="f" * 64)
    page(auditor, f"/history/{event.pk}/", 404)
    for query in (
        {},
        {"q": str(event.run_id)},
        {"q": "Other Person"},
        {"digest": "f" * 64},
        {"run": event.run_id},
    ):
        assert listed(auditor.get("/history/", query).content.decode()) == []
    assert "0 events." in page(auditor, "/history/")


def test_reading_changes_nothing(auditor: Client, tenant: Tenant) -> None:
    event = write(tenant)
    seal(db_clock)
    before = (Event.objects.count(), Seal.objects.count())
    for address in ("/history/", f"/history/{event.pk}/"):
        page(auditor, address)
        assert auditor.post(address).status_code == 405
    assert (Event.objects.count(), Seal.objects.count()) == before


def test_each_tab_lists_what_it_says_and_nothing_else(tenant: Tenant, auditor: Client) -> None:
    kinds = (
        "membership.roles_set",
        "absence.noted",
        "packet.exported",
        "chain.exported",
        "legal_hold.placed",
    )
    made = {kind: str(write(tenant, kind).pk) for kind in kinds}
    html = page(auditor, "/history/")
    for word, wanted in (
        ("Rights", {"membership.roles_set", "absence.noted"}), ("Taken along", {"packet.exported", "chain.exported"}),
        ("Erased, kept", {"legal_hold.placed"}),
    ):  # fmt: skip
        tab = re.search(rf'<a href="([^"]*)">{word}</a>', html)
        assert tab is not None, word
        answer = page(auditor, tab[1].replace("&amp;", "&"))
        assert {*listed(answer)} & {*made.values()} == {made[kind] for kind in wanted}
        assert re.search(rf'aria-current="page">{word}</a>', answer)
        assert (f"Events: <b><bdi>{word}</bdi></b>" in answer, 'exact-filters" open' in answer) == (
            True,
            False,
        )
        back = re.search(r'<a href="([^"]*)">Everything</a>', answer)
        assert back is not None
        assert {*made.values()} <= {*listed(page(auditor, back[1].replace("&amp;", "&")))}


def test_a_person_who_is_asked_for_is_named(tenant: Tenant, auditor: Client) -> None:
    ada = factories.make_user(tenant, "ada", display_name="Ada Lind")
    html = page(auditor, f"/history/?actor=user:{ada.pk}")
    assert "<b><bdi>Ada Lind</bdi></b>" in html
