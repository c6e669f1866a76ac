"""Protected states: the mixin that reloads them, and the database's walls made from the declaration."""

import threading
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, IntegrityError, connection, connections, models, transaction

from approvals.enums import ProposalStatus
from approvals.models import Proposal
from common.fsm import StateTrigger, allowed_moves, sources_of
from common.sealed import Ready
from common.walls import Frozen, Wall, WallSql
from tests.factories import make_proposal
from workflows.models import Command

pytestmark = pytest.mark.django_db


def walls_of(model: type[models.Model]) -> list[Wall]:
    return list(getattr(model._meta, "triggers", []))


OWN = [model for model in apps.get_models() if model.__module__.split(".")[0] in
       {"common", "audit", "access", "notify", "approvals", "workflows", "repair"}]  # fmt: skip
STATEFUL = [(model, wall) for model in OWN for wall in walls_of(model) if isinstance(wall, StateTrigger)]
NAMES = [model.__name__ for model, _ in STATEFUL]


def test_every_protected_state_has_its_wall() -> None:
    """A model with a state machine and no trigger would be open to `.update()`."""
    from django_fsm import FSMField

    machines = {
        model for model in OWN if any(isinstance(field, FSMField) for field in model._meta.concrete_fields)
    }
    assert machines == {model for model, _ in STATEFUL}
    assert {"Proposal", "Run", "Step", "Command", "Attempt", "RepairPacket"} <= set(NAMES)


@pytest.mark.parametrize(("model", "wall"), STATEFUL, ids=NAMES)
def test_the_wall_allows_the_declared_moves_and_no_others(
    model: type[models.Model], wall: StateTrigger
) -> None:
    """Every pair of states, on a table of its own that has the generated trigger and nothing else."""
    field = model._meta.get_field(wall.field)
    states = [str(value) for value, _ in field.choices]  # type: ignore[union-attr]
    moves = set(allowed_moves(model, wall.field))
    with transaction.atomic("owner"), connections["owner"].cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("SET LOCAL search_path = pg_temp")
        cursor.execute(f"CREATE TEMP TABLE machine ({field.column} text) ON COMMIT DROP")  # type: ignore[union-attr]
        cursor.execute(
            f"CREATE FUNCTION pg_temp.move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {wall.get_func(model)} END $$"
        )
        cursor.execute(
            "CREATE TRIGGER t BEFORE INSERT OR UPDATE ON machine FOR EACH ROW EXECUTE FUNCTION pg_temp.move()"
        )
        begun = {state for state in states if passes(cursor, f"INSERT INTO machine VALUES ('{state}')")}
        made = set()
        for source in states:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(f"DELETE FROM machine; INSERT INTO machine VALUES ('{source}')")
            cursor.execute("SET LOCAL session_replication_role = origin")
            made |= {
                (source, to)
                for to in states
                if passes(cursor, f"UPDATE machine SET {wall.field} = '{to}'", source)
            }
        cursor.execute("DROP TRIGGER t ON machine; DROP FUNCTION pg_temp.move()")
    assert begun == {str(state) for state in wall.initial}
    assert made - {(state, state) for state in states} == moves - {(state, state) for state in states}


def passes(cursor: Any, sql: str, source: str = "") -> bool:
    """Whether the statement goes through; undone either way."""
    try:
        with transaction.atomic("owner"):
            cursor.execute(sql)
            raise Undo
    except Undo:
        return True
    except IntegrityError:
        return False


class Undo(Exception):
    """Rolls a savepoint back."""


@pytest.mark.parametrize("model", OWN, ids=lambda model: model.__name__)
def test_no_wall_has_pgtriggers_door(model: type[models.Model]) -> None:
    for wall in walls_of(model):
        assert isinstance(wall.compile(model).sql, WallSql)
        assert "ignore" not in wall.compile(model).install_sql


def test_the_walls_in_the_database_are_those_of_the_code() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, tgname, obj_description(oid, 'pg_trigger') FROM pg_trigger"
            " WHERE tgname LIKE 'pgtrigger%'"
        )
        there = set(cursor.fetchall())
    wanted = {
        (model._meta.db_table, wall.get_pgid(model), wall.compile(model).hash)
        for model in OWN
        for wall in walls_of(model)
    }
    assert there == wanted


# --- one real row, as the application role, by every way around the state machine --------------
@pytest.fixture
def proposal() -> Proposal:
    return make_proposal()


def refused_by(name: str) -> Any:
    return pytest.raises(IntegrityError, check=lambda error: error.__cause__.diag.constraint_name == name)


def test_no_update_leaves_the_declared_moves(proposal: Proposal) -> None:
    with refused_by("approvals_proposal_moves"):
        Proposal.objects.filter(id=proposal.id).update(status=ProposalStatus.CONSUMED)
    with refused_by("approvals_proposal_moves"), connection.cursor() as cursor:
        cursor.execute("UPDATE approvals_proposal SET status = 'lapsed' WHERE id = %s", [proposal.id])
    other = Proposal.objects.get(id=proposal.id)
    other.__dict__["status"] = "consumed"
    with refused_by("approvals_proposal_moves"):
        Proposal.objects.bulk_update([other], ["status"])
    with refused_by("approvals_proposal_moves"):
        other.save()


def test_no_bound_column_changes_and_no_row_goes(proposal: Proposal) -> None:
    rows = Proposal.objects.filter(id=proposal.id)
    for change in ({"digest": "0" * 64}, {"contract": Ready(b"{}")}, {"needed": 2}, {"decide_by": None}):
        with refused_by("approvals_proposal_bound"):
            rows.update(**change)
    with refused_by("approvals_proposal_bound"), connection.cursor() as cursor:
        cursor.execute("DELETE FROM approvals_proposal WHERE id = %s", [proposal.id])
    for sql in ("TRUNCATE approvals_proposal CASCADE", "ALTER TABLE approvals_proposal DISABLE TRIGGER USER"):
        with pytest.raises(DatabaseError), connection.cursor() as cursor:
            cursor.execute(sql)


def test_the_ignore_switch_of_pgtrigger_opens_nothing(proposal: Proposal) -> None:
    names = ",".join(wall.get_pgid(Proposal) for wall in walls_of(Proposal))
    with refused_by("approvals_proposal_moves"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL pgtrigger.ignore = '{{{names}}}'")
        cursor.execute("UPDATE approvals_proposal SET status = 'consumed' WHERE id = %s", [proposal.id])


# --- the declaration, and the mixin ------------------------------------------------------------
def test_sources_come_from_the_declaration() -> None:
    assert sources_of(Proposal, "rejected") == ["pending"]
    assert "claimed" in sources_of(Command, "sent")
    assert sources_of(Proposal, "pending") == []


def test_a_protected_state_can_be_reloaded_but_not_set(proposal: Proposal) -> None:
    stale = Proposal.objects.get(id=proposal.id)
    with pytest.raises(AttributeError):
        stale.status = "approved"
    proposal.withdraw(at=proposal.created_at, reason="x")
    proposal.save()
    stale.refresh_from_db()
    assert stale.status == "withdrawn"
    stale.refresh_from_db(fields=["status"])
    assert stale.status == "withdrawn"


def test_a_reload_of_a_row_that_is_gone_keeps_the_protection(proposal: Proposal) -> None:
    lost = Proposal.objects.get(id=proposal.id)
    with connections["owner"].cursor() as cursor:
        cursor.execute("DELETE FROM approvals_proposal")
    with pytest.raises(Proposal.DoesNotExist):
        lost.refresh_from_db()
    assert lost.status == "pending"
    with pytest.raises(AttributeError):
        lost.status = "approved"


def test_a_reload_forgets_what_was_reached_from_the_row(proposal: Proposal) -> None:
    found = Proposal.objects.prefetch_related("successors").get(id=proposal.id)
    assert list(found.successors.all()) == []
    assert found.tenant.slug
    found.refresh_from_db()
    assert not getattr(found, "_prefetched_objects_cache", {})
    assert not Proposal._meta.get_field("tenant").is_cached(found)  # type: ignore[union-attr]


def test_reloads_at_once_do_not_disturb_each_other(proposal: Proposal) -> None:
    errors: list[BaseException] = []

    def reload() -> None:
        try:
            row = Proposal.objects.get(id=proposal.id)
            for _ in range(30):
                row.refresh_from_db()
                with pytest.raises(AttributeError):
                    row.status = "approved"
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=reload) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_frozen_without_columns_freezes_the_whole_row() -> None:
    assert "ELSIF TRUE THEN" in Frozen(name="whole", fields=[]).get_func(Proposal)
