"""A secret is approved by name and fingerprint; its value is read at the call, compared before it, and kept nowhere."""

import hashlib
import io
import logging
import logging.config
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from django.db import connections

from access.enums import Role
from common.clock import db_clock
from common.digests import secret_fingerprint
from common.fields import Identifier, SecretRef
from common.secret_values import SecretsUnreadable, values_of
from common.strictjson import canonicalize, parse
from config.logs import logging_config
from tests.api.callers import as_json, automation, proposal_body, refused, token_for
from tests.factories import make_user
from tests.workflows import toy
from tests.workflows.conftest import Desk
from tests.workflows.later import end_of, fresh, look_up
from tests.workflows.secrets_file import SecretsFile, secrets_file
from tests.workflows.test_asking_again import ask
from tests.workflows.test_worker_answers import CONFIRMED
from tests.workflows.test_worker_checks import VOID, nothing_sent
from tests.workflows.toy import NOTHING_CAME, PAID, ToyFlow, ToyPolicy
from workflows import registry
from workflows.authoring import (
    Arguments,
    Call,
    Facts,
    Finding,
    Observation,
    Operation,
    OutcomeTable,
    Policy,
    Propose,
    Site,
    SourceDown,
    Workflow,
    arg,
)
from workflows.models import Command, Document, Lookup
from workflows.preparing import prepare
from workflows.results import CredentialRefused, Malformed

__all__ = ["secrets_file"]
pytestmark = pytest.mark.django_db

VALUE, OTHER = "geheim-door-7c31\"'", "geheim-next-88d0"


class Door(Arguments):
    code: SecretRef = arg(label="Code", data_class="secret")


class DoorArguments(Arguments):
    order: Identifier = arg(label="Order", data_class="business")
    code: SecretRef = arg(label="Code", data_class="secret")
    others: list[Door] = arg([], label="Other doors", data_class="business")
    spare: SecretRef | None = arg(None, label="Spare", data_class="secret")


class OpenDoor(Operation[DoorArguments]):
    """No pins and no look of its own: it could go with others, were it not for its secret."""

    name: ClassVar[str] = "toy.open"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Open the door"
    provider: ClassVar[str] = "doors"
    arguments: ClassVar[type[Arguments]] = DoorArguments
    policy: ClassVar[Policy[Any]] = ToyPolicy()
    outcomes: ClassVar[OutcomeTable] = OutcomeTable(refused=frozenset({422}))

    def target(self, arguments: DoorArguments) -> str:
        return f"order:{arguments.order}"

    def consequence(self, arguments: DoorArguments, facts: Facts) -> str:
        return f"Open the door for order {arguments.order}."

    def execute(self, call: Call[DoorArguments]) -> Observation:
        toy.till.calls.append(call)
        answer = toy.till.answers.pop(0) if toy.till.answers else PAID
        return answer if isinstance(answer, Observation) else answer(call)

    def reconcile(self, call: Call[DoorArguments]) -> Finding:
        raise SourceDown(f"no door answers to {call.secret(call.arguments.code)}")


class DoorFlow(ToyFlow):
    name: ClassVar[str] = "toy-open"
    operations: ClassVar[tuple[type[Operation[Any]], ...]] = (OpenDoor,)


class DoorOutside(toy.ToyOutside):
    name: ClassVar[str] = "toy-open-outside"
    operations: ClassVar[tuple[type[Operation[Any]], ...]] = (OpenDoor,)


@pytest.fixture
def door(desk: Desk, secrets_file: SecretsFile) -> Iterator[Desk]:
    flows: tuple[type[Workflow], ...] = (DoorFlow, DoorOutside)
    for flow in flows:
        registry.register(flow)
    registry.register_definitions(clock=db_clock)
    secrets_file.write(file_of(desk))
    wants(desk, code={"secret_ref": "door"})
    yield desk
    for flow in flows:
        registry._workflows.pop(flow.name)
    registry._operations.pop(("toy.open", 1))


@pytest.fixture
def log() -> Generator[io.StringIO]:
    """What the product's own logging writes."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers[:], root.level
    logging.config.dictConfig(logging_config(level="INFO"))
    next(handler for handler in root.handlers if isinstance(handler, logging.StreamHandler)).setStream(stream)
    yield stream
    root.handlers[:], root.level = before


def file_of(desk: Desk, value: str = VALUE, **more: str) -> dict[str, Any]:
    return {desk.tenant.slug: {"door": value, **more}, "lagoon": {"theirs": "of-another-tenant"}}


def wants(desk: Desk, **arguments: Any) -> None:
    desk.till.stages["pay"] = lambda context: Propose(
        "toy.open", {"order": context.input.order, **arguments}, "the test wants it"
    )


def approved(desk: Desk) -> Command:
    return desk.approved(workflow="toy-open")


def fingerprint(desk: Desk, value: str = VALUE) -> str:
    return secret_fingerprint(desk.tenant.pk, value.encode())


# -- proposing ---------------------------------------------------------------------------------------------------


def test_the_contract_holds_the_name_and_the_fingerprint_that_we_compute(door: Desk) -> None:
    contract = parse(bytes(door.proposed(workflow="toy-open").contract))
    assert isinstance(contract, dict)
    bound = {"secret_ref": "door", "fingerprint": fingerprint(door)}
    assert contract["arguments"] == {"order": "1042", "code": bound, "others": [], "spare": None}


@pytest.mark.parametrize(
    ("arguments", "path", "code"),
    [
        ({"code": {"secret_ref": "gate"}}, "/code", "secret_unknown"),
        ({"code": {"secret_ref": "theirs"}}, "/code", "secret_unknown"),
        ({"code": {"secret_ref": "door", "fingerprint": "hmac:" + "1" * 64}}, "/code", "secret_changed"),
        ({"code": {"secret_ref": "door"}, "spare": {"secret_ref": "gate"}}, "/spare", "secret_unknown"),
        (
            {"code": {"secret_ref": "door"}, "others": [{"code": {"secret_ref": "gate"}}]},
            "/others/0/code", "secret_unknown",
        ),
        ({"code": {"secret_ref": ["door"]}}, "/code", "type"),
        ({"code": VALUE}, "/code", "secret_format"),
    ],
)  # fmt: skip
def test_what_is_refused(door: Desk, arguments: dict[str, Any], path: str, code: str) -> None:
    site = Site(door.tenant.pk, door.tenant.slug)
    with pytest.raises(Malformed) as found:
        prepare(site, Propose("toy.open", {"order": "1", **arguments}, "why"))
    assert found.value.code == "invalid_arguments"
    assert found.value.kept["errors"] == [{"path": path, "code": code}]


def test_nothing_is_proposed_where_the_file_is_open_to_others(door: Desk, secrets_file: SecretsFile) -> None:
    secrets_file.write(file_of(door), mode=0o640)
    with pytest.raises(CredentialRefused):
        prepare(
            Site(door.tenant.pk, door.tenant.slug),
            Propose("toy.open", {"order": "1", "code": {"secret_ref": "door"}}, "why"),
        )


def test_the_api_takes_a_name_and_compares_the_hash_of_what_is_bound(
    door: Desk, secrets_file: SecretsFile
) -> None:
    agent = automation(token_for(door.tenant))

    def propose(key: str, name: str = "door", **more: Any) -> Any:
        arguments = {"order": key, "code": {"secret_ref": name}}
        body = proposal_body(
            key, workflow="toy-open-outside", operation="toy.open", arguments=arguments, **more
        )
        return agent.post("/proposals", body)

    bound = {"secret_ref": "door", "fingerprint": fingerprint(door)}
    whole = canonicalize({"order": "1", "code": bound, "others": [], "spare": None})
    as_json(propose("1", hash=hashlib.sha256(whole).hexdigest()), 201)
    refused(propose("2", hash=hashlib.sha256(whole).hexdigest()), 422, "hash_mismatch")
    details = refused(propose("3", "gate"), 422, "invalid_arguments")
    assert details["errors"] == [{"path": "/code", "code": "secret_unknown"}]
    secrets_file.write(file_of(door), mode=0o644)
    refused(propose("4"), 503, "source_unavailable")


# -- sending -----------------------------------------------------------------------------------------------------


def test_the_call_gets_the_value(door: Desk) -> None:
    command, got = approved(door), list[str]()
    door.till.answers.append(lambda call: got.append(call.secret(call.arguments.code)) or PAID)
    door.work()
    assert got == [VALUE]
    assert end_of(command) == CONFIRMED


@pytest.mark.parametrize("at_once", [1, 10])
@pytest.mark.parametrize("change", ["rotated", "gone"])
def test_what_changed_between_approval_and_send_is_void(
    door: Desk, secrets_file: SecretsFile, settings: Any, change: str, at_once: int
) -> None:
    settings.PLACET_CALLS_AT_ONCE = at_once
    command = approved(door)
    rotated = change == "rotated"
    secrets_file.write(file_of(door, OTHER) if rotated else {door.tenant.slug: {"others": VALUE}})
    nothing_sent(door, command, VOID["pin"])


def test_what_changed_after_the_look_is_not_what_goes_out(door: Desk, secrets_file: SecretsFile) -> None:
    """The call uses the value that was compared, not the file as it is by then."""
    command, got = approved(door), list[str]()

    def answer(call: Call[Any]) -> Observation:
        secrets_file.write(file_of(door, OTHER))
        got.append(call.secret(call.arguments.code))
        return PAID

    door.till.answers.append(answer)
    door.work()
    assert (got, end_of(command)) == ([VALUE], CONFIRMED)


def test_it_is_asked_again_with_the_value_of_today(door: Desk, secrets_file: SecretsFile) -> None:
    command = approved(door)
    secrets_file.write(file_of(door, OTHER))
    door.work()
    opal = make_user(door.tenant, "opal", roles=[Role.OPERATOR])
    again = ask(door, command.run_id, opal)
    assert fingerprint(door, OTHER).encode() in bytes(again.contract)
    door.decide(again)
    got = list[str]()
    door.till.answers.append(lambda call: got.append(call.secret(call.arguments.code)) or PAID)
    door.work()
    assert got == [OTHER]
    assert end_of(Command.objects.get(proposal=again)) == CONFIRMED


def test_a_file_that_cannot_be_read_sends_nothing(door: Desk, secrets_file: SecretsFile) -> None:
    command = approved(door)
    secrets_file.path.unlink()
    door.work()
    assert door.till.calls == []
    assert (fresh(command).effect, fresh(command).failure_code) == ("none", "credential_refused")


# -- and nowhere else --------------------------------------------------------------------------------------------


def dump() -> str:
    """Every row of every table as text."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(table_name) FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        rows = []
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT t::text FROM {table} t")
            rows += [row for (row,) in cursor.fetchall()]
    return "\n".join(rows)


def echoes(call: Call[Any]) -> Observation:
    """A provider that says what it was given, everywhere."""
    said = f"opened with {call.secret(call.arguments.code)}"
    return replace(PAID, reference=said, detail=said, body={said: [said, {"in": said}]})


def breaks(call: Call[Any]) -> Observation:
    raise RuntimeError(f"{call.secret(call.arguments.code)} and {call!r} {call.secrets.values}")


def test_the_value_is_in_no_row_and_no_log(door: Desk, log: io.StringIO, settings: Any) -> None:
    settings.PLACET_CALLS_AT_ONCE = 1
    echoed, broken, unknown = (approved_for(door, order) for order in ("1", "2", "3"))
    door.till.answers += [echoes, breaks, NOTHING_CAME]
    door.work()
    look_up(unknown)
    door.advance()
    assert {fresh(command).status for command in (broken, unknown)} == {"unknown"}
    assert fresh(echoed).provider_reference == "opened with (secret)"
    assert Lookup.objects.get(command=unknown).detail == "no door answers to (secret)"
    kept = [bytes(document.content).decode() for document in Document.objects.all()]
    kept += [repr(call) + str(call.secrets) for call in door.till.calls]
    for text in (dump(), log.getvalue(), *kept):
        assert VALUE not in text
        assert VALUE.encode().hex() not in text
        assert "geheim-door" not in text
    assert "operation_broke" in log.getvalue()
    assert any("opened with (secret)" in text for text in kept)


def approved_for(desk: Desk, order: str) -> Command:
    return desk.approved(workflow="toy-open", order=order)


# -- the file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"harbour": []}', '{"harbour": {"door": "short"}}', '{"harbour": {"door": 12345678}}',
     '{"harbour": {"door": "12345678", "door": "87654321"}}'],
)  # fmt: skip
def test_a_file_that_is_none(secrets_file: SecretsFile, content: str) -> None:
    secrets_file.write(content)
    with pytest.raises(SecretsUnreadable) as found:
        values_of("harbour")
    assert "1234" not in repr(found.value)
    assert found.value.__context__ is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610])
def test_only_its_owner_may_read_it(secrets_file: SecretsFile, mode: int) -> None:
    secrets_file.write({"harbour": {"door": VALUE}})
    assert values_of("harbour")["door"].get_secret_value() == VALUE
    secrets_file.path.chmod(mode)  # the same file, after it was read
    with pytest.raises(SecretsUnreadable):
        values_of("harbour")


def test_without_a_file_there_are_none(settings: Any) -> None:
    settings.PLACET_SECRETS_FILE = ""
    assert values_of("harbour") == {}
