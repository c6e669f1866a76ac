"""Erasing against what may happen in the same instant: one of them wins, the other is told, nothing is half."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from access.enums import Role
from access.management.operator import at_the_console
from audit.models import Event
from audit.sealer import seal
from common.clock import db_clock
from common.content_errors import ERASED_TEXT
from common.models import ContentKey
from tests.factories import make_user
from tests.workflows.conftest import Desk, person
from tests.workflows.test_asking_again import ask, lapsed
from tests.workflows.test_erasing import ended, erase, hold
from tests.workflows.together import at_once
from workflows.actions.correcting import correct_outcome
from workflows.actions.erasing import erase_content
from workflows.actions.rewrapping import rewrap_keys
from workflows.models import Document, Run

pytestmark = pytest.mark.django_db


def is_erased(run_id: Any) -> bool:
    return ContentKey.objects.get(run_id=run_id).wrapped is None


def destroy(desk: Desk, run_id: Any) -> str:
    return str(
        erase_content(
            tenant_id=desk.tenant.pk, run_id=run_id, why="file-17", by=at_the_console(), clock=db_clock
        ).done
    )


def test_many_erase_it_once(desk: Desk) -> None:
    run = ended(desk)
    assert at_once(4, lambda _: destroy(desk, run.pk)) == {"True": 1, "False": 3}
    assert Event.objects.filter(kind="run.content_erased").count() == 1


@pytest.mark.parametrize("number", range(3))
def test_a_legal_hold_and_an_erasure_never_both(desk: Desk, number: int) -> None:
    run = ended(desk)
    came = at_once(2, lambda which: destroy(desk, run.pk) if which else hold(desk, run))
    held = ContentKey.objects.get(run_id=run.pk).held_at is not None
    assert held != is_erased(run.pk)
    assert came == ({"True": 1, "content_on_hold": 1} if held else {"True": 1, "already_erased": 1})


def test_a_correction_is_kept_before_it_or_refused_after_it(desk: Desk) -> None:
    run, owner = ended(desk), make_user(desk.tenant, "otto", roles=[Role.OWNER])

    def correct() -> str:
        about: dict[str, Any] = {"tenant_id": desk.tenant.pk, "run_id": run.pk, "by": person(owner)}
        correct_outcome(**about, outcome="other", reason="Jane Roe said so.")
        return "corrected"

    came = at_once(2, lambda which: destroy(desk, run.pk) if which else correct())
    assert is_erased(run.pk)
    assert came["True"] == 1
    assert came["corrected"] + came["content_erased"] == 1
    after = Run.objects.get(pk=run.pk)
    assert after.correction_reason == (ERASED_TEXT if came["corrected"] else "")


def test_what_is_asked_again_is_in_use(desk: Desk) -> None:
    opal, command = make_user(desk.tenant, "opal", roles=[Role.OPERATOR]), lapsed(desk)
    came = at_once(
        2, lambda which: destroy(desk, command.run_id) if which else ask(desk, command.run_id, opal).status
    )
    assert came == {"content_in_use": 1, "pending": 1}
    assert not is_erased(command.run_id)


def test_a_new_wrapping_key_brings_nothing_back(desk: Desk, settings: Any) -> None:
    from tests.common.test_sealed import key

    runs = [ended(desk, str(number)) for number in range(4)]
    settings.PLACET_CONTENT_KEYS = key()

    def do(which: int) -> str:
        if which < 4:
            return destroy(desk, runs[which].pk)
        rewrap_keys(by=at_the_console(), batch=2)
        return "wrapped"

    assert at_once(5, do) == {"True": 4, "wrapped": 1}
    assert all(is_erased(run.pk) for run in runs)


def test_the_history_still_proves_itself(desk: Desk) -> None:
    run = ended(desk)
    digests = set(Document.objects.values_list("digest", flat=True))
    erase(desk, run)
    seal(db_clock)
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert set(Document.objects.values_list("digest", flat=True)) == digests
