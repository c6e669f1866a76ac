"""``/metrics`` counts what is live, and is not public."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from audit.actions import record
from audit.actors import clock_actor
from audit.checks import check_chain
from audit.sealer import seal
from common.clock import db_clock
from common.heartbeat import note
from config import request_counters
from config.metrics import PARTS
from tests.factories import make_command, make_decision, make_packet, make_proposal, make_tenant, make_user
from tests.workflows.later import age, as_superuser
from tests.workflows.test_freezing import ROOT
from workflows.actions.freezing import Scope, freeze

pytestmark = pytest.mark.django_db


def test_it_counts_what_is_live() -> None:
    make_command(status="unknown")
    make_proposal()
    answer = Client().get("/metrics")
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.content.decode().splitlines()
    assert 'placet_commands{status="unknown"} 1.0' in lines
    assert 'placet_commands{status="ready"} 0.0' in lines
    assert 'placet_proposals{status="pending"} 1.0' in lines
    assert "placet_oldest_due_command_seconds 0.0" in lines


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_what_a_proxy_passes_on_is_not_from_here(header: str) -> None:
    assert Client().get("/metrics", headers={header: "127.0.0.1"}).status_code == 404


def test_another_machine_sees_nothing() -> None:
    assert Client().get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 404


def test_with_a_token_only_the_token_counts(settings: Any) -> None:
    settings.PLACET_METRICS_TOKEN = "let me see"
    elsewhere = {"REMOTE_ADDR": "192.0.2.1"}
    given = {"Authorization": "Bearer let me see"}
    assert Client().get("/metrics", headers=given, **elsewhere).status_code == 200
    assert Client().get("/metrics", headers={"Authorization": "Bearer guess"}, **elsewhere).status_code == 404
    assert Client().get("/metrics").status_code == 404


def test_it_is_only_read() -> None:
    assert Client().post("/metrics").status_code == 405


def test_it_names_versions_that_no_worker_takes() -> None:
    """What is due for a minute while nothing of its version is executed; a queue that moves is not meant."""
    ago, now = timedelta(minutes=2), db_clock()
    make_command(status="ready", operation_version=7, due_at=now - ago)
    make_command(status="ready", operation_version=7, due_at=now - timedelta(seconds=5))
    make_command(status="ready", operation_version=8, due_at=now - timedelta(seconds=5))
    make_command(status="ready", operation_version=9, due_at=now - ago)
    make_command(status="sent", operation_version=9)
    lines = Client().get("/metrics").content.decode().splitlines()
    found = [line for line in lines if line.startswith("placet_commands_without_worker{")]
    assert found == ['placet_commands_without_worker{operation="refunds.issue",version="7"} 2.0']


# -- what else it tells ---------------------------------------------------------------------------------------------


def record_one(tenant_id: Any) -> None:
    with transaction.atomic():
        record(
            by=clock_actor(),
            kind="tenant.created",
            tenant_id=tenant_id,
            subject_type="tenant",
            subject_id=tenant_id,
        )


def scrape() -> dict[str, float]:
    """Every sample by its name and labels, read by the library that Prometheus' own clients use."""
    text = Client().get("/metrics").content.decode()
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {_named(sample.name, sample.labels): sample.value for sample in found}


def _named(name: str, labels: dict[str, str]) -> str:
    return name + "".join(f" {key}={value}" for key, value in sorted(labels.items()))


def test_each_part_can_be_read() -> None:
    found = scrape()
    parts = {name: value for name, value in found.items() if name.startswith("placet_metrics_unreadable")}
    assert len(parts) == len(PARTS)
    assert set(parts.values()) == {0}
    assert found["placet_database_up"] == 1


def test_how_long_things_wait() -> None:
    command = make_command(status="unknown")
    age(command.run_id, 300, "workflows_command")
    make_command(status="ready", due_at=db_clock() - timedelta(seconds=90))
    packet = make_packet()
    as_superuser(
        "UPDATE repair_repairpacket SET opened_at = opened_at - interval '1 hour',"
        " waiting_until = clock_timestamp() - interval '1 minute' WHERE id = %s", packet.pk,
    )  # fmt: skip
    found = scrape()
    assert found["placet_oldest_seconds status=unknown what=command"] == pytest.approx(300, abs=30)
    assert found["placet_oldest_seconds status=open what=packet"] == pytest.approx(3600, abs=30)
    assert found["placet_oldest_due_seconds lane=new what=command"] == pytest.approx(90, abs=30)
    assert found["placet_oldest_due_command_seconds"] == pytest.approx(90, abs=30)
    assert found["placet_due lane=new what=command"] == 1
    assert found["placet_overdue_packets"] == 1
    assert found["placet_open_packets class=person"] == 1
    assert found["placet_runs status=queued"] >= 1


def test_how_people_decide() -> None:
    proposal = make_proposal()
    user = make_user(proposal.tenant)
    age(proposal.run_id, 600, "approvals_proposal")
    make_decision(proposal, user, kind="reject")
    old = make_decision(make_proposal(), None)
    as_superuser("UPDATE approvals_decision SET at = at - interval '2 hours' WHERE id = %s", old.pk)
    found = scrape()
    assert found["placet_decisions_last_hour kind=reject via=session"] == 1
    assert not any("via=rule" in name for name in found if "decisions" in name)
    waited = found["placet_decision_age_seconds kind=reject quantile=0.9 via=session"]
    assert waited == pytest.approx(600, abs=30)


def test_what_holds() -> None:
    freeze(scope=Scope(None), why="Maintenance.", by=ROOT, clock=db_clock)
    found = scrape()
    assert found["placet_holds reason=freeze status=in_force"] == 1
    assert found["placet_holds reason=circuit status=in_force"] == 0


def test_how_far_the_sealer_is() -> None:
    seal(db_clock)
    assert scrape()["placet_unsealed_events"] == 0
    record_one(make_tenant().pk)
    as_superuser("UPDATE audit_event SET at = at - interval '5 minutes'")
    found = scrape()
    assert found["placet_unsealed_events"] == 1
    assert found["placet_oldest_unsealed_event_seconds"] == pytest.approx(300, abs=30)
    seal(db_clock)
    assert scrape()["placet_oldest_unsealed_event_seconds"] == 0


def test_what_the_last_check_of_the_history_found() -> None:
    tenants = [make_tenant().pk for _ in range(3)]
    for tenant in tenants:
        record_one(tenant)
    seal(db_clock)
    check_chain(tenants[0], by=clock_actor())
    as_superuser("UPDATE audit_event SET reason = 'changed' WHERE tenant_id = %s", tenants[1])
    check_chain(tenants[1], by=clock_actor())
    found = scrape()
    assert [found[f"placet_history_chains found={word}"] for word in ("holds", "broken", "never")] == [
        1,
        1,
        1,
    ]
    assert found["placet_history_check_age_seconds"] < 60


def test_which_processes_live() -> None:
    note("sweep", "here-1")
    note("sweep", "here-2")
    note("worker", "there-3")
    as_superuser(
        "UPDATE common_heartbeat SET seen_at = seen_at - interval '100 seconds' WHERE name <> 'here-1'"
    )
    found = scrape()
    assert found["placet_processes kind=sweep"] == 1
    assert found["placet_processes kind=worker"] == 0
    assert found["placet_heartbeat_age_seconds kind=sweep"] < 60
    assert found["placet_heartbeat_age_seconds kind=worker"] == pytest.approx(100, abs=30)
    assert "placet_heartbeat_age_seconds kind=beat" not in found


def test_requests_are_counted_by_the_pattern_of_their_address() -> None:
    name = "placet_requests_total method={} route={} status={}"
    before = scrape()
    Client().get("/healthz")
    Client().get("/history/0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11/nothing/")
    Client().generic("BREW\tx", "/healthz")
    found = scrape()

    def grown(key: str) -> float:
        return found.get(key, 0) - before.get(key, 0)

    assert grown(name.format("GET", "healthz", 200)) == 1
    assert grown(name.format("GET", "none", 404)) == 1
    assert grown(name.format("other", "healthz", 405)) == 1
    assert grown("placet_request_seconds_count route=healthz") == 2
    assert grown("placet_rate_limited_requests_total") == 0
    assert not any("0199d3f0" in key or "BREW" in key for key in found)


def test_refused_as_too_many(settings: Any) -> None:
    before = scrape()["placet_rate_limited_requests_total"]
    request_counters.count("GET", "review/", 429, 0.001)
    assert scrape()["placet_rate_limited_requests_total"] == before + 1


def test_no_tenant_and_no_person_is_among_the_labels() -> None:
    tenant = make_tenant("harbour")
    user = make_user(tenant, "lovelace")
    make_command(status="unknown", tenant=tenant)
    make_decision(make_proposal(tenant=tenant), user)
    text = Client().get("/metrics").content.decode()
    assert not any(str(word) in text for word in (tenant.pk, user.pk, "harbour", "lovelace", "user:"))


def test_a_part_that_cannot_be_read_hides_no_other() -> None:
    as_superuser("ALTER TABLE audit_head RENAME TO elsewhere")
    try:
        found = scrape()
    finally:
        as_superuser("ALTER TABLE elsewhere RENAME TO audit_head")
    assert found["placet_metrics_unreadable part=history"] == 1
    assert found["placet_metrics_unreadable part=waiting"] == 0
    assert "placet_unsealed_events" not in found
    assert found["placet_commands status=unknown"] == 0


def test_the_cost_does_not_depend_on_how_much_there_is(django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(40):
        scrape()
    for _ in range(3):
        make_command(status="unknown")
        make_packet()
    with django_assert_max_num_queries(40):
        scrape()
