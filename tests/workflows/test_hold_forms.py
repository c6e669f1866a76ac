"""Freezing, lifting and asking again on the pages of the kill switch: who may, and what comes of it."""

import re
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from audit.models import Event
from common.ids import new_id
from tests import factories
from tests.pages import timeless
from tests.workflows.conftest import Desk
from tests.workflows.later import age, fresh
from tests.workflows.test_freezing import frozen, hold_back, release, unfreeze
from tests.workflows.test_hold_pages import FREEZE, HTMX, LIST, here, lost, operator, page, words
from workflows.actions.freezing import Scope
from workflows.models import Hold, Run

__all__ = ["operator"]
pytestmark = pytest.mark.django_db


# -- freezing -------------------------------------------------------------------------------------------------


def test_freezing_says_first_what_will_stop_and_writes_nothing(operator: Client, desk: Desk) -> None:
    lost(desk, "7")
    desk.approved()
    answer = operator.post(LIST, FREEZE | {"decision": ""})
    text = words(answer.content.decode())
    assert "Nothing at all is newly sent for harbour: no workflow, no operation, no target." in text
    assert "1 approved action waits now: it is held, not lost." in text
    assert "1 is sent and not settled: it is not called back." in text
    assert "the payments look wrong" in text
    assert not Hold.objects.exists()
    assert 'name="decision" value="freeze"' in answer.content.decode()


@pytest.mark.parametrize(
    ("typed", "scope"),
    [
        ({"scope": "tenant", "workflow": "toy-pay", "target": "order:1"}, {}),
        ({"scope": "workflow", "workflow": "toy-pay"}, {"workflow": "toy-pay"}),
        ({"scope": "version", "version": "toy-pay@1"}, {"workflow": "toy-pay", "workflow_version": 1}),
        ({"scope": "operation", "operation": "toy.pay"}, {"operation": "toy.pay"}),
        ({"scope": "target", "target": "order:1042"}, {"target": "order:1042"}),
    ],
    ids=str,
)
def test_each_scope_is_frozen_as_it_was_chosen(
    operator: Client, desk: Desk, typed: dict[str, str], scope: dict[str, Any]
) -> None:
    """What was typed beside the other choices is not looked at."""
    answer = operator.post(LIST, FREEZE | typed)
    hold = Hold.objects.get()
    assert answer.headers["Location"] == here(hold)
    wanted = Scope(desk.tenant.pk, **scope)
    assert Scope(hold.tenant_id, hold.workflow, hold.workflow_version, hold.operation, hold.target) == wanted
    assert (hold.why, hold.reason, hold.drained_at is None) == ("the payments look wrong", "freeze", False)
    event = Event.objects.get(kind="hold.in_force")
    assert (event.via, event.owner) == ("session", "person")
    assert "nothing is newly sent from now on" in page(operator, here(hold))


def test_what_was_typed_is_kept_when_something_is_missing(operator: Client, desk: Desk) -> None:
    for missing, says in (
        ({"why": " "}, "Say why: whoever finds it later must know."),
        ({"scope": ""}, "Choose what to freeze."),
        ({"scope": "workflow"}, "Choose which workflow."),
        ({"scope": "target", "target": ""}, "Type the target."),
        ({"scope": "operation", "operation": "toy.pai"}, "toy.pai is not one of the available choices."),
    ):  # fmt: skip
        typed = (
            FREEZE
            | {"target": "order:77", "why": "it pays \u00bbtwice\u00ab", "version": "toy-pay@1"}
            | missing
        )
        answer = operator.post(LIST, typed)
        html = answer.content.decode()
        assert answer.status_code == 422
        assert says in html
        assert ("it pays »twice«" in html) is ("why" not in missing)
        assert ('value="order:77"' in html) is ("target" not in missing)
        assert '<option value="toy-pay@1" selected>' in html
    assert not Hold.objects.exists()


def test_going_back_from_the_words_keeps_what_was_typed(operator: Client, desk: Desk) -> None:
    typed = {"scope": "target", "target": "order:1042", "why": "it pays twice"}
    confirm = operator.post(LIST, typed).content.decode()
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', confirm))
    back = operator.post(LIST, hidden | {"decision": "change"}).content.decode()
    assert 'value="target" required checked' in back
    assert 'value="order:1042"' in back
    assert "it pays twice</textarea>" in back
    operator.post(LIST, hidden | {"decision": "freeze"})
    assert Hold.objects.get().target == "order:1042"


def test_a_target_that_nobody_ever_named_is_doubted(operator: Client, desk: Desk) -> None:
    desk.proposed(order="1042")
    typed = {"scope": "target", "why": "it pays twice", "target": "order:1043"}
    assert "Check every letter" in operator.post(LIST, typed).content.decode()
    assert "Check every letter" not in operator.post(LIST, typed | {"target": "order:1042"}).content.decode()


def test_a_form_that_is_sent_twice_freezes_once(operator: Client, desk: Desk) -> None:
    first, second = (operator.post(LIST, FREEZE).headers["Location"] for _ in range(2))
    assert first == second == here(Hold.objects.get())
    operator.post(LIST, FREEZE | {"why": "something else"})
    assert Hold.objects.count() == 2


# -- who ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", list(Role))
def test_every_role_reads_and_only_some_freeze_and_lift(desk: Desk, client: Client, role: Role) -> None:
    may = role in (Role.OPERATOR, Role.OWNER, Role.ADMIN)
    hold = frozen(desk)
    client.force_login(factories.make_user(desk.tenant, roles=[role]))
    assert ('id="freeze"' in page(client, LIST)) is may
    assert ('id="lift"' in page(client, here(hold))) is may
    assert client.post(LIST, FREEZE).status_code == (302 if may else 403)
    assert client.post(f"{here(hold)}lift/", {"why": "fine again"}).status_code == (302 if may else 403)
    assert client.post(f"{here(hold)}ask-again/").status_code == (302 if may else 403)
    assert Hold.objects.get(pk=hold.pk).status == ("lifting" if may else "in_force")


def test_who_has_no_membership_sees_nothing(desk: Desk, client: Client) -> None:
    hold = frozen(desk)
    assert client.get(LIST).headers["Location"] == f"/sign-in/?next={LIST}"
    client.force_login(factories.make_user(desk.tenant, roles=[]))
    for address in (LIST, here(hold)):
        assert client.get(address).status_code == 403
        assert client.post(address).status_code in (403, 405)


def test_another_tenants_hold_is_missing_like_one_that_never_was(operator: Client, desk: Desk) -> None:
    other = frozen(desk, tenant_id=factories.make_tenant("quay").pk)
    bodies = set()
    for hold_id in (other.pk, new_id()):
        for address in ("", "lift/", "ask-again/"):
            answer = operator.post(f"{LIST}{hold_id}/{address}", {"why": "let me"}) if address else operator.get(
                f"{LIST}{hold_id}/"
            )  # fmt: skip
            assert answer.status_code == 404
            bodies.add(answer.content.decode().replace(str(hold_id), ""))
    assert len(bodies) == 1
    assert "quay" not in page(operator, LIST)
    assert 'class="freeze"' not in page(operator, "/runs/")
    assert Hold.objects.get().status == "in_force"


def test_the_installations_freeze_is_read_here_and_lifted_at_its_command_line(
    operator: Client, desk: Desk
) -> None:
    foreign = factories.make_command(status="unknown", tenant=factories.make_tenant("quay"))
    mine = lost(desk, "7")
    hold = frozen(desk, tenant_id=None)
    assert {row["id"] for row in hold.in_flight["commands"]} == {str(foreign.pk), str(mine.pk)}
    html = page(operator, here(hold))
    assert "./placet lift" in html
    assert 'id="lift"' not in html
    assert "0 sent, 1 unknown" in html
    assert str(foreign.run_id) not in html
    assert str(mine.run_id) in html
    assert operator.post(f"{here(hold)}lift/", {"why": "let me"}).status_code == 404
    assert "Everything on this installation" in page(operator, LIST)


# -- lifting --------------------------------------------------------------------------------------------------


def test_lifting_asks_why_lets_go_and_shows_how_far_it_is(
    operator: Client, desk: Desk, settings: Any
) -> None:
    settings.PLACET_RELEASES_PER_SECOND = 2
    for number in range(5):
        desk.approved(order=str(number))
    hold = frozen(desk)
    hold_back()
    answer = operator.post(f"{here(hold)}lift/", {"why": " "})
    assert answer.status_code == 422
    assert "Say why it may go on" in answer.content.decode()
    answer = operator.post(f"{here(hold)}lift/", {"why": "it was a display fault"}, follow=True)
    text = words(answer.content.decode())
    assert "5 actions are held by it now. At most 2 a second are let go, so about 3 s are left." in text
    [ask] = re.findall(r'id="hold-now" hx-get="([^"]+)" hx-trigger="every 2s"', answer.content.decode())
    polls = HTMX | {"HX-Target": "hold-now"}
    assert operator.get(ask, headers=polls).status_code == 204
    release()
    moved = operator.get(ask, headers=polls)
    assert "3 actions are held by it now." in words(moved.content.decode())
    assert "HX-Trigger" not in moved.headers
    while release():
        pass
    ended = operator.get(ask, headers=polls)
    assert ended.headers["HX-Trigger"] == "hold-moved"
    assert "hx-trigger" not in ended.content.decode()
    html = page(operator, here(hold))
    assert timeless(ended.content.decode()) in timeless(html)
    assert "it was a display fault" in html
    assert "Let go: a worker checks them once more and sends them 5" in words(html)
    rest = page(operator, here(hold), **HTMX, **{"HX-Target": "hold-rest"})
    assert words(rest.partition("recomputed")[2]) in words(html)


def test_lifting_twice_leads_to_the_same_page(operator: Client, desk: Desk) -> None:
    hold = frozen(desk)
    for _ in range(2):
        answer = operator.post(f"{here(hold)}lift/", {"why": "it was a display fault"})
        assert (answer.status_code, answer.headers["Location"]) == (302, here(hold))
    assert "It was lifted already." in page(operator, here(hold))
    assert Event.objects.filter(kind="hold.lifting").count() == 1
    assert operator.get(f"{here(hold)}lift/").headers["Location"] == here(hold)


def test_what_lapsed_under_it_is_asked_again_one_by_one_or_all_at_once(operator: Client, desk: Desk) -> None:
    commands = [desk.approved(order=str(number)) for number in range(3)]
    hold = frozen(desk)
    hold_back()
    for command in commands:
        age(command.run_id, 3600, "approvals_proposal")
    assert page(operator, here(hold)).count("it will lapse, not be sent") == 3
    unfreeze(hold)
    release()
    assert {fresh(command).void_reason for command in commands} == {"lapsed"}
    html = page(operator, here(hold))
    assert "Ask again about all 3" in html
    assert "Void, never sent: the time to execute had passed 3" in words(html)
    one = {"run": str(commands[0].run_id), "step": "pay"}
    assert (
        "A new version waits for a decision."
        in operator.post(f"{here(hold)}ask-again/", one, follow=True).content.decode()
    )
    assert "Not asked again." in operator.post(f"{here(hold)}ask-again/", one, follow=True).content.decode()
    assert "Ask again about all 2" in page(operator, here(hold))
    assert "Asked again about 2." in operator.post(f"{here(hold)}ask-again/", follow=True).content.decode()
    assert "Ask again about" not in page(operator, here(hold))
    assert set(Run.objects.values_list("status", flat=True)) == {"waiting_for_approval"}
    for strange in ({"run": "x"}, {"run": str(new_id()), "step": "pay"}):
        assert operator.post(f"{here(hold)}ask-again/", strange).status_code == 404
