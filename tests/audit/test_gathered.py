"""The events of one action are inserted together, and are undone with what they tell."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from audit.actions import record
from audit.actors import clock_actor
from audit.models import Event
from common.models import Tenant
from common.tx import action, flush
from tests.factories import make_tenant

pytestmark = pytest.mark.django_db


def note(tenant: Tenant, kind: str) -> None:
    record(by=clock_actor(), kind=kind, tenant_id=tenant.pk, subject_type="test", subject_id=tenant.pk)


def kinds() -> list[str]:
    return list(Event.objects.order_by("at", "id").values_list("kind", flat=True))


def test_one_statement_in_the_order_of_recording() -> None:
    tenant = make_tenant()
    act = action(lambda: [note(tenant, kind) for kind in ("a", "b", "c")])
    with CaptureQueriesContext(connection) as queries:
        act()
    assert sum("INSERT INTO audit_event" in query["sql"] for query in queries.captured_queries) == 1
    assert kinds() == ["a", "b", "c"]


def test_an_action_that_is_undone_leaves_no_event_and_none_for_the_next() -> None:
    tenant = make_tenant()

    @action
    def breaks() -> None:
        note(tenant, "a")
        raise ValueError("undone")

    with pytest.raises(ValueError, match="undone"):
        breaks()
    action(lambda: note(tenant, "b"))()
    assert kinds() == ["b"]


def test_events_of_a_savepoint_are_undone_with_it() -> None:
    tenant = make_tenant()

    @action
    def act() -> None:
        note(tenant, "before")
        flush()
        try:
            with transaction.atomic():
                note(tenant, "undone")
                raise ValueError("undone")
        except ValueError:
            note(tenant, "after")

    act()
    assert kinds() == ["before", "after"]


def test_outside_an_action_an_event_is_there_at_once() -> None:
    tenant = make_tenant()
    with transaction.atomic():
        note(tenant, "a")
        assert kinds() == ["a"]
