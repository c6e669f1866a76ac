"""The list of events as a file, and the filters that go through runs."""

import csv
import hashlib
import io
import json
from contextlib import closing
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from audit import taking
from audit.models import Event
from audit.sealer import seal
from common.clock import db_clock
from common.models import Tenant
from tests import factories
from tests.audit.test_views import by_person, listed, page, write

pytestmark = pytest.mark.django_db
EVIL = '=HYPERLINK("https://evil.example")'


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def auditor(tenant: Tenant, client: Client) -> Client:
    client.force_login(factories.make_user(tenant, "aude", roles=[Role.AUDITOR], display_name="Aude L."))
    return client


def taken(client: Client, **asked: Any) -> bytes:
    answer = client.post("/history/list/", asked)
    assert answer.status_code == 200
    return bytes(answer.content)


@pytest.mark.parametrize("role", list(Role))
def test_readers_of_the_history_take_it_along_and_nobody_else(
    tenant: Tenant, client: Client, role: Role
) -> None:
    client.force_login(factories.make_user(tenant, roles=[role]))
    write(tenant)
    allowed = role in (Role.AUDITOR, Role.ADMIN)
    assert client.post("/history/list/", {"as": "csv"}).status_code == (200 if allowed else 403)
    assert client.get("/history/list/").status_code == 405


def test_the_file_has_what_the_list_shows_on_all_its_pages(auditor: Client, tenant: Tenant) -> None:
    wanted = [write(tenant, "proposal.vote") for _ in range(53)]
    write(tenant)
    write(factories.make_tenant("quay"), "proposal.vote")
    seal(db_clock)
    rows = list(csv.DictReader(io.StringIO(taken(auditor, **{"as": "csv", "kind": "proposal."}).decode())))
    assert [row["id"] for row in rows] == [str(event.pk) for event in reversed(wanted)]
    lines = [json.loads(line) for line in taken(auditor, **{"as": "jsonl", "kind": "proposal."}).splitlines()]
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    assert {line["seq"] for line in lines} == {int(row["seq"]) for row in rows}


def test_hostile_words_are_no_formula_in_the_file_and_whole_in_json_lines(
    auditor: Client, tenant: Tenant
) -> None:
    eve = factories.make_user(tenant, "eve", display_name="@SUM(1)")
    write(tenant, "hold.in_force", by=by_person(eve), reason=EVIL, body={"a": "=1+1"})
    [row] = csv.DictReader(io.StringIO(taken(auditor, **{"as": "csv", "kind": "hold."}).decode()))
    assert (row["reason"], row["name"]) == (f"'{EVIL}", "'@SUM(1)")
    assert not any(str(value).startswith(("=", "+", "-", "@")) for value in row.values())
    [line] = taken(auditor, **{"as": "jsonl", "kind": "hold."}).splitlines()
    assert json.loads(line)["reason"] == EVIL


def test_taking_it_along_is_an_event_with_filters_count_and_digest(auditor: Client, tenant: Tenant) -> None:
    write(tenant, "hold.lifted")
    made = taken(auditor, **{"as": "jsonl", "kind": "hold.lifted", "when": "hour"})
    event = Event.objects.get(kind=taking.EXPORTED)
    assert event.tenant_id == tenant.pk
    assert event.performed_by.startswith("user:")
    assert event.digest == hashlib.sha256(made).hexdigest()
    assert event.body == {
        "list": "history", "as": "jsonl", "count": 1, "filters": {"kind": "hold.lifted", "when": "Last hour"},
    }  # fmt: skip


def test_too_many_lines_are_refused_in_words_and_nothing_is_half(
    auditor: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "MOST", 2)
    for _ in range(3):
        write(tenant, "hold.lifted")
    answer = auditor.post("/history/list/", {"as": "csv", "kind": "hold.lifted"}, follow=True)
    assert "These filters fit more than one file holds." in answer.content.decode()
    assert answer.redirect_chain == [("/history/?kind=hold.lifted", 302)]
    assert not Event.objects.filter(kind=taking.EXPORTED).exists()


def test_an_export_needs_the_token_of_its_page(tenant: Tenant) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.make_user(tenant, roles=[Role.AUDITOR]))
    assert client.post("/history/list/", {"as": "csv"}).status_code == 403


def test_operation_target_and_several_kinds_narrow_the_list(auditor: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant, target="order:4711")
    wanted = write(tenant, "hold.lifted", run_id=proposal.run_id)
    other = write(tenant)
    for query in (
        {"target": "order:4711"}, {"operation": proposal.operation}, {"kinds": "hold.lifted, proposal."},
        {"kinds": "hold.", "target": "order:4711"},
    ):  # fmt: skip
        assert listed(page(auditor, "/history/?" + "&".join(f"{k}={v}" for k, v in query.items()))) == [
            str(wanted.pk)
        ]
    assert "No event fits" in page(auditor, "/history/?target=order:4712")
    assert listed(page(auditor, "/history/?kinds=hold.+command.")) == [str(other.pk), str(wanted.pk)]


def test_each_cell_offers_only_this(auditor: Client, tenant: Tenant) -> None:
    event = write(tenant, digest="a" * 64)
    html = page(auditor, "/history/")
    for name, value in (
        ("kind", event.kind), ("actor", event.performed_by), ("run", event.run_id), ("digest", event.digest),
    ):  # fmt: skip
        assert f'form="history-filter" name="{name}" value="{value}"' in html
    # What a button adds stands behind the field of the same name, and the last one counts.
    assert listed(page(auditor, f"/history/?kind=&kind={event.kind}&actor=&run=")) == [str(event.pk)]
    assert "No event fits" in page(auditor, f"/history/?kind={event.kind}&kind=hold.lifted")


def test_a_large_file_is_sent_as_it_is_read(
    auditor: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tenant, "hold.lifted")
    whole = taken(auditor, **{"as": "jsonl", "kind": "hold.lifted"})
    monkeypatch.setattr(taking, "IN_MEMORY", 10)
    answer = auditor.post("/history/list/", {"as": "jsonl", "kind": "hold.lifted"})
    with closing(answer):
        assert b"".join(answer.streaming_content) == whole  # type: ignore[arg-type]
