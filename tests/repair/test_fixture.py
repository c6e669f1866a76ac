"""A packet becomes a case of the project's format: valid again, and about nobody."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from audit.models import Event
from common.ids import new_id
from examples.refunds.schemas import RefundRequest
from repair.fixtures import SOMEBODY, WORDS, redacted
from repair.models import RepairPacket
from tests.workflows.conftest import Desk
from tests.workflows.toy import NOTHING_CAME

pytestmark = pytest.mark.django_db
CASE = {
    "customer_id": "c-1", "requester_email": "mara.lindqvist@example.com", "message": "It arrived broken, Mara",
    "order_id": "9001", "claimed_amounts": [{"amount": "49.90", "currency": "EUR"}],
}  # fmt: skip


def made(packet_id: object) -> dict[str, object]:
    out = io.StringIO()
    call_command("fixture", str(packet_id), stdout=out)
    found: dict[str, object] = json.loads(out.getvalue())
    return found


def test_what_is_personal_is_replaced_by_something_of_its_type() -> None:
    clean = redacted(RefundRequest, CASE)
    assert clean == CASE | {"requester_email": SOMEBODY, "message": WORDS}
    RefundRequest.model_validate(clean)


def test_the_case_says_what_was_decided_and_where_it_rested(desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    case = made(RepairPacket.objects.get(command_id=command.pk).pk)
    assert set(case) == {"id", "title", "input", "decide", "expect", "unacceptable"}
    assert case["decide"] == [{"by": "one", "kind": "approve"}]
    assert case["expect"] == {
        "state": "unknown", "outcome": "", "user_message": "", "owner": "toy-desk", "cause": "command_unknown",
        "refunds": [],
    }  # fmt: skip
    assert case["input"] == {"order": WORDS}, "the toy declares no classes, so nothing of it leaves"
    assert Event.objects.get(kind="packet.exported").body == {"as": "fixture"}


def test_a_packet_that_is_not_there(desk: Desk) -> None:
    with pytest.raises(CommandError, match="no packet"):
        made(new_id())
