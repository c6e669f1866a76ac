"""What an incident touches: each criterion alone and together, within a time, a bound and one organisation."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from common.clock import db_clock
from repair.incidents import finding
from repair.incidents.criteria import USUAL, Criteria, alike
from repair.incidents.finding import find
from repair.incidents.forms import CriteriaForm
from repair.models import RepairPacket
from tests import factories as f
from tests import rows
from tests.repair.choosing import refused
from tests.workflows.conftest import Desk
from workflows.models import Command, Run, Step

pytestmark = pytest.mark.django_db


def criteria(**named: Any) -> Criteria:
    return Criteria(**({"since": rows.now() - timedelta(days=1)} | named))


def touched(desk: Desk, **named: Any) -> set[Any]:
    found = find(desk.tenant.pk, criteria(**named), rows.now() + timedelta(seconds=1))
    runs = set(found.runs.values_list("pk", flat=True))
    assert found.count == len(runs)
    assert not found.more
    return runs


@pytest.fixture
def run(desk: Desk) -> Run:
    """One that went through, of the real engine and worker, among others that fit nothing."""
    command = desk.approved(order="1042")
    desk.work()
    f.make_run(desk.tenant, workflow="other-flow")
    f.make_run(f.make_tenant("quay"), workflow="toy-pay")
    return Run.objects.get(pk=command.run_id)


FITS: list[dict[str, Any]] = [
    {"workflow": "toy-pay"},
    {"workflow": "toy-pay", "workflow_version": 1},
    {"operation": "toy.pay"},
    {"operation": "toy.pay", "operation_version": 1},
    {"target": "order:1042"},
    {"policy_version": 1, "operation": "toy.pay"},
    {"workflow": "toy-pay", "operation": "toy.pay", "target": "order:1042", "policy_version": 1},
]
FITS_NOT: list[dict[str, Any]] = [
    {"workflow": "toy-pay", "workflow_version": 2},
    {"operation": "toy.pay", "operation_version": 2},
    {"target": "order:1043"},
    {"operation": "toy.pay", "policy_version": 9},
    {"policy": "no-such-policy"},
    {"provider": "nobody"},
    {"model": "rules@1"},
    {"prompt": "p-1"},
    {"outcome": "failed"},
    {"cause": "command_unknown"},
    {"workflow": "toy-pay", "target": "order:1043"},
]


@pytest.mark.parametrize("named", FITS, ids=str)
def test_what_fits_is_found(desk: Desk, run: Run, named: dict[str, Any]) -> None:
    assert touched(desk, **named) == {run.pk}


@pytest.mark.parametrize("named", FITS_NOT, ids=str)
def test_what_does_not_is_not(desk: Desk, run: Run, named: dict[str, Any]) -> None:
    assert touched(desk, **named) == set()


def test_policy_and_provider_are_those_of_the_operation(desk: Desk, run: Run) -> None:
    from workflows import registry

    known = registry.operation("toy.pay")
    assert touched(desk, policy=known.policy.name) == {run.pk}
    assert touched(desk, provider=known.provider) == {run.pk}
    command = Command.objects.get(run=run)
    assert touched(desk, provider=command.provider, target="order:1042") == {run.pk}
    assert touched(desk, provider=command.provider, target="order:1") == set()


def test_model_and_prompt_are_read_where_runs_name_them(desk: Desk, run: Run) -> None:
    step = Step.objects.filter(run=run).order_by("position").first()
    assert step is not None
    step.notes, step.usage = ["classifier:rules@1", "prompt:p-7"], {"model": "big-1", "prompt": "p-1"}
    step.save()
    run.versions = {"model": "v-model", "prompt": "v-prompt"}
    run.save()
    for name, values in {
        "model": ["rules@1", "big-1", "v-model"],
        "prompt": ["p-7", "p-1", "v-prompt"],
    }.items():
        for value in values:
            assert touched(desk, **{name: value}) == {run.pk}, value
        assert touched(desk, **{name: f"{values[0]}0"}) == set()


def test_outcome_is_what_it_was_called_first_and_last_and_its_state(desk: Desk, run: Run) -> None:
    failed = f.make_run(desk.tenant, status="failed", outcome="declined", corrected_outcome="refunded")
    for outcome in ("declined", "refunded", "failed"):
        assert touched(desk, outcome=outcome) == {failed.pk}


def test_the_cause_is_that_of_a_packet(desk: Desk, run: Run) -> None:
    command, packet = refused(desk, "7")
    assert touched(desk, cause=packet.cause) == {command.run_id}
    assert RepairPacket.objects.filter(tenant=desk.tenant).count() == 1


def test_two_things_said_of_an_action_must_be_true_of_the_same_one(desk: Desk, run: Run) -> None:
    other = f.make_proposal(run, f.make_step(run, key="other", position=7), target="order:9")
    assert touched(desk, target=other.target) == {run.pk}
    assert touched(desk, target=other.target, operation=other.operation) == {run.pk}
    assert touched(desk, target=other.target, operation="toy.pay") == set()


def test_only_what_began_within_the_time(desk: Desk) -> None:
    now = rows.now()
    ages = {
        hours: f.make_run(desk.tenant, created_at=now - timedelta(hours=hours)).pk for hours in (1, 5, 30)
    }
    assert touched(desk) == {ages[1], ages[5]}
    assert touched(desk, until=now - timedelta(hours=3)) == {ages[5]}
    assert touched(desk, since=now - timedelta(days=2), until=now - timedelta(days=1)) == {ages[30]}


def test_a_number_that_is_not_whole_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        f.make_run(desk.tenant)
    assert find(desk.tenant.pk, criteria(), rows.now()).says == "5"
    monkeypatch.setattr(finding, "SCANNED", 3)
    cut = find(desk.tenant.pk, criteria(), rows.now())
    assert (cut.cut, cut.more) == (True, True)
    assert cut.says.startswith("at least ")
    monkeypatch.setattr(finding, "MOST", 2)
    assert find(desk.tenant.pk, criteria(), rows.now()).says == "more than 2"


def test_the_time_is_read_by_the_index_of_the_newest_runs(desk: Desk) -> None:
    """Whatever is asked for, no look reads more of the table than its time."""
    _many_runs(desk)
    found = find(desk.tenant.pk, criteria(workflow="toy-pay", model="x"), db_clock())
    with CaptureQueriesContext(
        connection,
    ) as asked:
        list(found.runs[:51])
    with connections["owner"].cursor() as cursor:  # who does not own a table cannot analyze it
        cursor.execute("ANALYZE workflows_run")
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {asked[-1]['sql']}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "workflows_run_newest" in plan or "workflows_run_by_workflow" in plan, plan
    assert "Seq Scan on workflows_run" not in plan, plan


def _many_runs(desk: Desk) -> None:
    """Old ones, which no look may read."""
    old = rows.now() - timedelta(days=300)
    made = [rows.run_row(desk.tenant, at=old - timedelta(minutes=number)) for number in range(3000)]
    Run.objects.bulk_create(made)
    f.make_run(desk.tenant)


# -- addresses ----------------------------------------------------------------------------------------------------


def test_an_address_says_all_of_it_and_is_read_as_it_was_written() -> None:
    now = rows.now().replace(microsecond=0)
    asked = Criteria(
        since=now - timedelta(days=3), until=now, workflow="toy-pay", workflow_version=2, policy_version=7,
        model="a b&c", target="order:<1>", outcome="failed", cause="command_dead",
    )  # fmt: skip
    query = {name: values[0] for name, values in parse_qs(urlsplit(asked.address()).query).items()}
    form = CriteriaForm(query)
    assert form.is_valid(), form.errors
    assert form.criteria(now) == asked
    assert Criteria.from_json(asked.as_json()) == asked


def test_without_a_time_it_is_the_last_seven_days_and_never_more_than_ninety() -> None:
    now = rows.now()
    form = CriteriaForm({"workflow": "toy-pay"})
    assert form.is_valid()
    usual = form.criteria(now)
    assert usual is not None
    assert (usual.since, usual.until) == (now - USUAL, None)
    long = CriteriaForm({"since": f"{now - timedelta(days=91):%Y-%m-%dT%H:%M:%S}"})
    assert long.is_valid()
    assert long.criteria(now) is None
    assert "longer than 90 days" in str(long.errors["since"])
    assert alike(now, workflow="toy-pay").startswith("/repair/incidents/new/?workflow=toy-pay&since=")


@pytest.mark.parametrize("query", [
    {"workflow_version": "0"}, {"workflow_version": "x"}, {"policy_version": str(2**31)}, {"target": "a\0b"},
    {"since": "yesterday"}, {"target": "x" * 201}, {"since": "2026-01-02T00:00", "until": "2026-01-01T00:00"},
])  # fmt: skip
def test_what_cannot_be_asked_is_said_so(query: dict[str, str]) -> None:
    assert not CriteriaForm(query).is_valid()
