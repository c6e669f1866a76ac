"""The demo command: what scripts find in its file, and that it may run again."""

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.test import Client

from access.models import ApiToken, Membership, User
from common.models import Tenant
from config.demo import EVENTS, SAMPLE_INPUT
from examples.refunds.schemas import RefundRequest
from workflows.models import Run

pytestmark = pytest.mark.django_db


def demo(folder: Path, *, provider: str = "http://127.0.0.1:9") -> dict[str, Any]:
    out = folder / "demo.json"
    call_command("demo", base_url="http://localhost:1", provider_url=provider, out=out, stdout=io.StringIO())
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    return json.loads(out.read_text())


def test_file_has_what_scripts_need(tmp_path: Path) -> None:
    made = demo(tmp_path)
    assert made["base_url"] == "http://localhost:1"
    assert {role: len(people) for role, people in made["users"].items()} == {
        "reviewer": 2,
        "operator": 1,
        "auditor": 1,
        "admin": 1,
    }
    assert made["tokens"].keys() == {"proposer", "auditor"}
    assert made["sample_input"] == SAMPLE_INPUT


def test_everybody_can_sign_in_with_their_role(tmp_path: Path) -> None:
    for role, people in demo(tmp_path)["users"].items():
        for name, password in people.items():
            user = authenticate(username=name, password=password)
            assert isinstance(user, User)
            assert Membership.objects.get(user=user).roles == [role]


def test_tokens_work(tmp_path: Path) -> None:
    tokens = demo(tmp_path)["tokens"]
    answer = Client().get("/api/v1/workflows", headers={"Authorization": f"Bearer {tokens['proposer']}"})
    assert answer.status_code == 200


def test_second_run_changes_nothing_but_addresses(tmp_path: Path) -> None:
    first = demo(tmp_path)
    counts = (Tenant.objects.count(), User.objects.count(), ApiToken.objects.count(), Run.objects.count())
    second = demo(tmp_path, provider="http://127.0.0.1:10")
    assert second == first | {"provider_url": "http://127.0.0.1:10"}
    assert counts == (
        Tenant.objects.count(),
        User.objects.count(),
        ApiToken.objects.count(),
        Run.objects.count(),
    )
    assert counts[3] == len(EVENTS.read_text().splitlines())


def test_lost_file_comes_back_with_the_same_passwords_and_new_tokens(tmp_path: Path) -> None:
    first = demo(tmp_path)
    (tmp_path / "demo.json").unlink()
    second = demo(tmp_path)
    assert second["users"] == first["users"]
    assert second["tokens"] != first["tokens"]


def test_every_input_is_valid() -> None:
    inputs = [json.loads(line)["input"] for line in EVENTS.read_text().splitlines()]
    for raw in [*inputs, SAMPLE_INPUT]:
        RefundRequest.model_validate(raw)
