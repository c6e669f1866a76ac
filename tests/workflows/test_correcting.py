"""What the user got is corrected by a person, with a reason; the first word stays."""

import pytest
from django.test import Client

from access.enums import Role
from audit.models import Event
from tests.factories import make_user
from tests.workflows.conftest import Desk
from workflows.models import Run
from workflows.results import Finish
from workflows.selectors import envelope

pytestmark = pytest.mark.django_db


def ended(desk: Desk) -> Run:
    desk.till.stages["read"] = Finish("nothing_to_do")
    run = desk.start()
    desk.advance()
    return Run.objects.get(pk=run.pk)


def signed_in(desk: Desk, client: Client, role: Role) -> Client:
    client.force_login(make_user(desk.tenant, "olga", roles=[role]))
    return client


def test_an_operator_corrects_and_both_words_are_kept(desk: Desk, client: Client) -> None:
    run = ended(desk)
    operator = signed_in(desk, client, Role.OPERATOR)
    assert f"/runs/{run.pk}/outcome/" in operator.get(f"/runs/{run.pk}/").content.decode()
    form = operator.get(f"/runs/{run.pk}/outcome/").content.decode()
    for outcome in ("paid", "declined", "cancelled", "partial"):
        assert f'<option value="{outcome}">' in form
    answer = operator.post(
        f"/runs/{run.pk}/outcome/", {"outcome": "refunded", "reason": "The customer showed the receipt."}
    )
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    run.refresh_from_db()
    told = envelope(run)
    assert (run.status, told["outcome"], told["original_outcome"]) == ("completed", "refunded", "no_action")
    event = Event.objects.get(kind="run.outcome_corrected")
    assert (event.from_state, event.to_state, event.via) == ("no_action", "refunded", "session")
    assert "showed the receipt" not in operator.get(f"/runs/{run.pk}/").content.decode()
    client.force_login(make_user(desk.tenant, "ava", roles=[Role.AUDITOR]))
    assert "showed the receipt" in client.get(f"/runs/{run.pk}/").content.decode()


@pytest.mark.parametrize(
    "typed", [{"outcome": "Refunded by hand", "reason": "x"}, {"outcome": "refunded", "reason": " "}, {}]
)
def test_what_is_no_outcome_or_has_no_reason_changes_nothing(
    desk: Desk, client: Client, typed: dict[str, str]
) -> None:
    run = ended(desk)
    answer = signed_in(desk, client, Role.OPERATOR).post(f"/runs/{run.pk}/outcome/", typed)
    assert answer.status_code == 422
    run.refresh_from_db()
    assert run.corrected_outcome == ""


def test_a_live_run_and_another_role_are_refused(desk: Desk, client: Client) -> None:
    run = desk.start()
    operator = signed_in(desk, client, Role.OPERATOR)
    answer = operator.post(f"/runs/{run.pk}/outcome/", {"outcome": "refunded", "reason": "by hand"})
    assert answer.status_code == 422
    assert "Only the outcome of a run that has ended is corrected." in answer.content.decode()
    client.force_login(desk.ada)
    assert client.get(f"/runs/{run.pk}/outcome/").status_code == 403
    assert not Event.objects.filter(kind="run.outcome_corrected").exists()
