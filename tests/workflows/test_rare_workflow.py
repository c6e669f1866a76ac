"""The runs of a workflow that has few are found without a look through those of all others."""

from datetime import timedelta

import pytest
from django.db import connections

from tests import factories, rows
from workflows.models import Run
from workflows.selectors import runs_newest_first

pytestmark = pytest.mark.django_db


def test_a_rare_workflow_is_read_by_its_index() -> None:
    tenant, now = factories.make_tenant(), rows.now()
    others = [rows.run_row(tenant, at=now - timedelta(minutes=number)) for number in range(3000)]
    Run.objects.bulk_create(others)
    rare = factories.make_run(tenant, workflow="rare", created_at=now - timedelta(days=90))
    page = runs_newest_first(tenant.pk, workflow="rare")[:101]
    with connections["owner"].cursor() as cursor:  # who does not own a table cannot analyze it
        cursor.execute("ANALYZE workflows_run")
    plan = page.explain()
    assert "workflows_run_by_workflow" in plan, plan
    assert "Sort" not in plan, plan
    assert [run.pk for run in page] == [rare.pk]
