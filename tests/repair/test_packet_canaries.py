"""Secrets and personal data planted in every way in: in no packet, export, mail or log beyond their class (S1, I30)."""

import io
import json

import pytest
from django.core import mail
from django.test import Client

from access.enums import Role
from audit.sealer import seal
from common.clock import db_clock
from notify.models import Message
from notify.running import tell_due
from repair.models import RepairPacket
from tests.api.conftest import world
from tests.factories import make_user
from tests.security.test_canaries import PEOPLE, Planted, hits, personal, planted
from tests.security.test_hostile_text import log
from tests.workflows.conftest import desk
from tests.workflows.later import as_superuser
from tests.workflows.secrets_file import secrets_file

__all__ = ["desk", "log", "planted", "secrets_file", "world"]
pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]


def signed_in(found: Planted, role: Role) -> Client:
    client = Client()
    name = f"{role.value}-packets"
    client.force_login(make_user(found.world.desk.tenant, name, roles=[role], email=f"{name}@post.example"))
    return client


def every_packet(found: Planted) -> list[RepairPacket]:
    packets = list(RepairPacket.objects.filter(tenant=found.world.desk.tenant))
    assert {"command_unknown", "command_refused"} <= {packet.cause for packet in packets}
    return packets


@pytest.mark.parametrize("role", list(Role))
def test_no_export_holds_one_whoever_takes_it(planted: Planted, role: Role) -> None:
    client, packets = signed_in(planted, role), every_packet(planted)
    assert packets
    for packet in packets:
        for kind in ("json", "md"):
            answer = client.post(f"/repair/{packet.pk}/packet.{kind}")
            text = answer.content.decode()
            assert answer.status_code == 200
            assert personal(text) == [], packet.cause
            assert hits(text, planted.secrets) == [], packet.cause
            if kind == "json":
                assert json.loads(text)["packet"]["id"] == str(packet.pk)


@pytest.mark.parametrize("role", list(Role))
def test_a_page_holds_personal_values_for_the_roles_that_see_them_and_secrets_for_nobody(
    planted: Planted, role: Role
) -> None:
    client = signed_in(planted, role)
    shown = "".join(client.get(f"/repair/{packet.pk}/").content.decode() for packet in every_packet(planted))
    assert hits(shown, planted.secrets) == []
    sees = role in (Role.REVIEWER, Role.AUDITOR, Role.OWNER)
    assert bool(personal(shown)) == sees
    assert hits(shown, [PEOPLE["decision"], PEOPLE["changes"], PEOPLE["body"], PEOPLE["code"]]) == []


def test_neither_do_the_alerts_about_them_nor_the_log(planted: Planted, log: io.StringIO) -> None:
    operator = signed_in(planted, Role.OPERATOR)
    packet = every_packet(planted)[0]
    seal(db_clock)
    tell_due()
    as_superuser("UPDATE repair_stopalert SET due_at = now() - interval '1 second' WHERE due_at IS NOT NULL")
    tell_due()
    told = " ".join(f"{row.lead} {row.facts} {row.href}" for row in Message.objects.filter(kind="stopped"))
    assert "stopped" in told
    operator.post(f"/repair/{packet.pk}/packet.json")
    mails = " ".join(f"{one.subject} {one.body}" for one in mail.outbox)
    assert "stopped" in mails
    for text in (told, mails, log.getvalue()):
        assert personal(text) == []
        assert hits(text, planted.secrets) == []


def test_equal_secrets_are_told_from_different_ones_by_their_fingerprints(planted: Planted) -> None:
    client = signed_in(planted, Role.OPERATOR)
    found = set()
    for packet in every_packet(planted):
        document = json.loads(client.post(f"/repair/{packet.pk}/packet.json").content)
        for field in (document["action"] or {}).get("fields") or ():
            if field["class"] == "secret":
                found.add(field["text"])
    assert all(text.startswith("⟦secret ") and ", fingerprint " in text for text in found)
    assert len(found) <= 1
