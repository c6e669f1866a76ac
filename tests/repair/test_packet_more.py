"""What a packet says beside the state: where it was to be done, what must not happen twice, what alike cases share."""

import json

import pytest
from django.test import Client

from access.enums import Role
from common.clock import db_clock
from repair.models import RepairPacket
from tests.factories import make_user
from tests.repair.choosing import REFUSED, packet_of
from tests.workflows.conftest import Desk, person
from tests.workflows.test_late_answers import late_yes, voided
from tests.workflows.test_worker_unknown import unknown
from tests.workflows.toy import ToyPay
from tests.workflows.toy_back import FLOW, RECIPIENT, PayBack, installed
from workflows.actions.attesting import attest

pytestmark = pytest.mark.django_db


@pytest.fixture
def omar(desk: Desk, client: Client) -> Client:
    client.force_login(make_user(desk.tenant, "omar", roles=[Role.OPERATOR]))
    return client


def exported(client: Client, packet: RepairPacket, kind: str = "md") -> str:
    answer = client.post(f"/repair/{packet.pk}/packet.{kind}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_late_yes_is_not_told_as_that_nothing_happened(desk: Desk, omar: Client) -> None:
    command, claim = voided(desk)
    late_yes(claim)
    packet = packet_of(command.run_id, "late_effect")
    says = "was sent once. It was settled as not happened, and a late answer says that it happened."
    text = exported(omar, packet)
    assert says in text
    assert "| Has it happened | ` a late answer says yes, after it was settled as no ` |" in text
    assert json.loads(exported(omar, packet, "json"))["command"]["late_reference"] == "re_1"
    assert says in omar.get(f"/repair/{packet.pk}/").content.decode()


def test_what_happened_in_part_is_not_told_as_that_it_happened(desk: Desk, omar: Client) -> None:
    command = unknown(desk)
    packet = packet_of(command.run_id)
    attest(
        tenant_id=desk.tenant.pk, command_id=command.pk, says="partial", reference="re_7", reason="Half of it.",
        by=person(make_user(desk.tenant, "olga", roles=[Role.OPERATOR])), clock=db_clock,
    )  # fmt: skip
    assert "was sent once. It happened in part." in exported(omar, packet)


def test_where_it_was_to_be_done_and_what_must_not_happen_twice(
    desk: Desk, omar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the author's words, and without a personal value that the words are made of."""
    monkeypatch.setattr(ToyPay, "account", lambda self, site: f"till.example, the account of {site.tenant}")
    monkeypatch.setattr(PayBack, "business_key", lambda self, it: f"payment of {it.order}, told to {it.told}")
    with installed(desk):
        desk.till.answers = [REFUSED]
        command = desk.approved(workflow=FLOW)
        desk.work()
        packet = packet_of(command.run_id)
        text, page = exported(omar, packet), omar.get(f"/repair/{packet.pk}/").content.decode()
        assert "| account | ` till.example, the account of harbour ` |" in text
        assert "| must not happen twice | ` payment of 1042, told to " in text
        assert RECIPIENT not in text
        for words in ("till.example, the account of harbour", "payment of 1042, told to"):
            assert words in page


def test_what_alike_cases_have_in_common_is_one_line(desk: Desk, omar: Client) -> None:
    for order in ("1", "2", "3"):
        desk.till.answers = [REFUSED]
        command = desk.approved(order=order)
        desk.work()
    text = exported(omar, packet_of(command.run_id))
    [line] = [line for line in text.splitlines() if "the newest 2 lie within" in line]
    assert (
        "the same workflow: toy-pay, version 1; the same step: pay; the same provider’s word: over limit"
        in line
    )
    assert "the same target" not in line
    assert (
        "In common: the newest 2 lie within"
        in omar.get(f"/repair/{packet_of(command.run_id).pk}/").content.decode()
    )
