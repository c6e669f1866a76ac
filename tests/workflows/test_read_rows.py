"""Rows by a statement of ours are the rows that Django itself reads, column by column."""

import pytest
from django.db import models

from approvals.models import Decision, Proposal
from common.prepared import Reading
from tests.workflows.conftest import Desk
from workflows.models import Attempt, Command, Run, Step

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [Attempt, Command, Decision, Proposal, Run, Step])
def test_a_row_is_as_django_reads_it(desk: Desk, model: type[models.Model]) -> None:
    desk.approved()
    desk.work()
    ours, theirs = Reading(model, "ORDER BY r.id").rows(), model._base_manager.order_by("id")
    assert len(ours) == len(theirs) > 0
    for mine, its in zip(ours, theirs, strict=True):
        _check_same(mine, its)


def _check_same(ours: models.Model, theirs: models.Model) -> None:
    assert (ours._state.adding, ours._state.db) == (theirs._state.adding, theirs._state.db)
    for field in ours._meta.concrete_fields:
        assert type(ours.__dict__[field.attname]) is type(theirs.__dict__[field.attname]), field
        assert getattr(ours, field.attname) == getattr(theirs, field.attname), field
    assert ours == theirs


def test_a_column_that_was_not_read_is_read_when_it_is_asked_for(desk: Desk) -> None:
    desk.approved()
    [run] = Reading(Run, "", only=("on_behalf_of",)).rows()
    assert run.get_deferred_fields() >= {"status", "workflow", "created_at"}
    assert run.workflow == Run.objects.get(pk=run.pk).workflow


def test_a_related_row_is_found(desk: Desk) -> None:
    command = desk.approved()
    [row] = Reading(Command, "").rows()
    assert row.proposal == command.proposal
