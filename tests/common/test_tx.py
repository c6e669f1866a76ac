"""An action owns its transaction."""

import pytest
from django.db import connection, transaction

from common.clock import db_clock
from common.models import Tenant
from common.tx import NoTransaction, action, require_transaction

pytestmark = pytest.mark.django_db


@action
def make(slug: str, *, fail: bool = False) -> Tenant:
    """Make a tenant."""
    require_transaction()
    tenant = Tenant.objects.create(slug=slug, name=slug)
    if fail:
        raise ValueError(slug)
    return tenant


def test_an_action_that_returned_has_committed() -> None:
    make("a")
    connection.close()
    assert Tenant.objects.get().slug == "a"
    assert make.__doc__ == "Make a tenant."


def test_an_action_that_failed_left_nothing() -> None:
    with pytest.raises(ValueError, match="a"):
        make("a", fail=True)
    assert not Tenant.objects.exists()


def test_an_action_inside_another_transaction_is_a_programming_error() -> None:
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        make("a")
    assert not Tenant.objects.exists()


def test_a_step_of_an_action_does_not_run_outside_a_transaction() -> None:
    with pytest.raises(NoTransaction, match="must run inside"):
        require_transaction()


def test_the_clock_moves_within_a_transaction() -> None:
    """It is read by a statement of its own, and is not the time at which the transaction began."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            began = cursor.fetchone()[0]
        first, second = db_clock(), db_clock()
    assert began < first < second
    assert first.tzinfo is not None
