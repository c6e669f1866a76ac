"""That something stopped is told where people already look, and a storm of one kind is one message."""

from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from access.models import Group
from audit.models import Event
from audit.sealer import seal
from common.clock import db_clock
from common.tx import action
from notify.actions.following import follow
from notify.models import Dispatch, Message, Notice
from repair import telling
from repair.actions import open_packet
from repair.models import RepairPacket
from repair.models_alerts import StopAlert
from tests import factories
from tests.factories import make_group, make_user
from tests.notify.conftest import box, told
from tests.notify.letterbox import Letterbox
from tests.notify.rows import destination_row
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, as_superuser, look_up
from tests.workflows.toy import NOTHING_CAME
from workflows.authoring import Finding
from workflows.hooks import Stop
from workflows.models import Command

__all__ = ["box"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def omar(desk: Desk) -> Any:
    return make_user(desk.tenant, "omar", roles=[Role.OPERATOR], email="omar@post.example")


@action
def stop(desk: Desk, number: int, cause: str = "command_unknown", owner: str = "toy-desk") -> None:
    for _ in range(number):
        run = factories.make_run(desk.tenant, workflow="toy-pay")
        open_packet(Stop(run, "pay", cause, "It stopped.", owner), SWEEP, db_clock())


def pass_window() -> None:
    as_superuser("UPDATE repair_stopalert SET due_at = now() - interval '1 second' WHERE due_at IS NOT NULL")


def tell() -> None:
    """What the seconds after bring: the history is sealed and heard of, and what was gathered is told."""
    seal(db_clock)
    follow(clock=db_clock)
    pass_window()
    told()


def leads(kind: str = "stopped") -> list[str]:
    return list(Message.objects.filter(kind=kind).order_by("created_at", "id").values_list("lead", flat=True))


def test_five_hundred_packets_are_one_message(desk: Desk, omar: Any, box: Letterbox) -> None:
    stop(desk, 500)
    tell()
    assert leads() == ["Toy payments: 500 runs stopped. No complete answer."]
    assert box.recipients == ["omar@post.example"]
    assert box.taken[0]["Subject"] == "Toy payments: 500 runs stopped. No complete answer."
    message = Message.objects.get(kind="stopped")
    assert message.href == "/repair/?workflow=toy-pay&q=command_unknown"
    assert Notice.objects.filter(message=message).count() == 1
    told()
    assert len(box.taken) == 1


def test_the_link_leads_to_just_these(desk: Desk, omar: Any, client: Client) -> None:
    stop(desk, 3)
    stop(desk, 2, cause="stage_broke")
    tell()
    client.force_login(omar)
    for message, number in zip(Message.objects.filter(kind="stopped").order_by("lead"), (2, 3), strict=True):
        assert message.lead.startswith(f"Toy payments: {number} runs")
        assert client.get(message.href).content.decode().count('class="stretch"') == number


def test_what_comes_later_is_told_once_a_window_with_its_number(
    desk: Desk, omar: Any, box: Letterbox
) -> None:
    stop(desk, 1)
    tell()
    for _ in range(3):
        stop(desk, 2)
        seal(db_clock)
        told()
    assert leads() == ["Toy payments: 1 run stopped. No complete answer."], (
        "within the window nothing is told"
    )
    tell()
    assert leads()[1:] == ["Toy payments: 6 runs more stopped. No complete answer."]
    tell()
    alert = StopAlert.objects.get()
    assert (alert.stopped, alert.told, alert.due_at, alert.closed_at is not None) == (7, 7, None, True)
    stop(desk, 1)
    tell()
    assert leads()[2:] == ["Toy payments: 1 run stopped. No complete answer."], "a new kind begins anew"


def test_the_owners_group_is_told_and_its_room(desk: Desk, omar: Any, box: Letterbox) -> None:
    group = make_group(desk.tenant, "Refund desk")
    make_user(desk.tenant, "rita", roles=[Role.REVIEWER], groups=[group], email="rita@post.example")
    room = destination_row(desk.tenant)
    room.group, room.kinds = group, ["stopped"]
    room.save()
    stop(desk, 2, owner="Refund desk")
    seal(db_clock)
    follow(clock=db_clock)
    pass_window()
    telling.tell_gathered(db_clock)
    from notify.actions.spreading import spread_due

    spread_due(clock=db_clock)
    people = set(Notice.objects.filter(message__kind="stopped").values_list("user__username", flat=True))
    assert people == {"rita"}
    assert Dispatch.objects.filter(message__kind="stopped", channel="chat", destination=room).count() == 1


def test_a_group_with_nobody_in_it_is_no_reason_for_silence(desk: Desk, omar: Any, box: Letterbox) -> None:
    Group.objects.create(tenant=desk.tenant, name="toy-desk")
    stop(desk, 1)
    tell()
    assert box.recipients == ["omar@post.example"]


def test_when_all_are_settled_nobody_is_asked_any_more(desk: Desk, omar: Any, box: Letterbox) -> None:
    command = desk.approved()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    desk.till.findings = [Finding("happened", "re_1")]
    assert look_up(Command.objects.get(pk=command.pk))
    tell()
    assert box.recipients == [], "it was over before it was told"
    known = telling.standings(desk.tenant.pk, StopAlert.objects.values_list("pk", flat=True))
    assert [standing.waits for standing in known.values()] == [False]


def test_a_notice_is_over_when_its_last_packet_is(desk: Desk, omar: Any, box: Letterbox) -> None:
    command = desk.approved()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    tell()
    assert Notice.objects.get(message__kind="stopped").over_at is None
    desk.till.findings = [Finding("happened", "re_1")]
    assert look_up(Command.objects.get(pk=command.pk))
    tell()
    assert Notice.objects.get(message__kind="stopped").over_at is not None


def test_another_tenants_storm_is_not_ours(desk: Desk, omar: Any, box: Letterbox) -> None:
    other = factories.make_tenant("other")
    RepairPacket.objects.all()
    run = factories.make_run(other, workflow="toy-pay")
    action(lambda: open_packet(Stop(run, "pay", "stalled", "x", "toy-desk"), SWEEP, db_clock()))()
    tell()
    assert box.recipients == []
    assert Event.objects.filter(kind="packet.opened", tenant_id=other.pk).count() == 1
