"""Every sealed column, damaged, and keys that are not there: whoever reads gets an answer with a name, and no work is
lost.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.http import HttpResponse

from access.enums import Role
from approvals.models import Proposal
from common.clock import db_clock
from common.content_errors import DAMAGED_TEXT
from common.sealed import MARK, sealed_models, sealed_names
from repair.models import RepairPacket
from tests.api.callers import Caller, automation, proposal_body, refused, signed_in, token_for
from tests.common.test_sealed import key
from tests.factories import make_user
from tests.tenants.planted import id_for, plant
from tests.tenants.test_every_address import ADDRESSES, OTHERWISE, WORDS, Address, ask
from tests.workflows.conftest import Desk, desk, person
from tests.workflows.counter import Counter
from tests.workflows.later import as_superuser, end_of, fresh, open_packets
from tests.workflows.test_asking_again import ask as ask_once_more
from tests.workflows.test_asking_again import lapsed
from tests.workflows.toy import NOTHING_CAME
from workflows.actions.asking_again import ContractChanged
from workflows.actions.cancelling import cancel_run
from workflows.actions.correcting import correct_outcome
from workflows.authoring import Finding, WaitForData
from workflows.models import Attempt, Command, Document, Run, Step
from workflows.sweep import look_around

__all__ = ["desk"]
pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]

NOT_IN_CASES = {
    "Answer.wording", "Incident.hypothesis", "Incident.remedy", "Incident.signal", "Incident.trouble",
    "IncidentNote.words", "IncidentRun.words", "Proposal.end_words", "Question.wording", "Rejection.lifted_why",
    "RepairMove.words", "Replay.reason", "Sample.words",
}  # fmt: skip
"""What people wrote around cases such as these: no worker reads it."""
COLUMNS = [(model, name) for model in sealed_models() for name in sealed_names(model)]
IN_CASES = {
    f"{model.__name__}.{name}": (model, name)
    for model, name in COLUMNS
    if f"{model.__name__}.{name}" not in NOT_IN_CASES
}
each_column = pytest.mark.parametrize(("model", "name"), IN_CASES.values(), ids=IN_CASES)
LISTS = ("/review/", "/runs/", "/repair/", "/history/", "/api/v1/runs", "/api/v1/proposals")
GARBAGE = bytes(range(90))


def damage(model: Any, name: str, raw: bytes = GARBAGE) -> int:
    """These bytes in place of the ciphertext, in every row that has one; returns how many have."""
    kind = str(model._meta.get_field(name).db_type(connections["owner"]))
    text = "placet-sealed.1:" + b64encode(raw).decode()
    stored: Any = {"bytea": MARK + raw, "jsonb": f'"{text}"', "text": text}[kind]
    filled = f"{name} IS NOT NULL" + (f" AND {name} <> ''" if kind == "text" else "")
    return as_superuser(f"UPDATE {model._meta.db_table} SET {name} = %s WHERE {filled}", stored)


@dataclass
class Cases:
    """One of each: waits for a vote, for data, for a worker; in doubt; lapsed; done; and what people said of them."""

    desk: Desk
    ready: Command
    unknown: Command
    lapsed: Command


@pytest.fixture
def cases(desk: Desk) -> Cases:
    opal = make_user(desk.tenant, "opal", roles=[Role.OPERATOR])
    otto = make_user(desk.tenant, "otto", roles=[Role.OWNER])
    done = desk.approved(order="1")
    desk.work()
    desk.advance()
    about: dict[str, Any] = {"tenant_id": desk.tenant.pk, "run_id": done.run_id}
    correct_outcome(**about, outcome="other", reason="Because.", by=person(otto))
    old = lapsed(desk, order="2")
    desk.till.answers = [NOTHING_CAME, NOTHING_CAME]
    said, unknown = desk.approved(order="3"), desk.approved(order="4")
    desk.work()
    Counter(desk, fresh(said), opal, otto).say("happened")
    desk.till.stages["read"] = WaitForData("Which?", {"type": "object"}, timedelta(hours=1))
    desk.start(order="5")
    desk.advance()
    del desk.till.stages["read"]
    automation(token_for(desk.tenant, "proposer")).post("/proposals", proposal_body("k-1"))
    desk.decide(desk.proposed(order="6"), "reject", reason="Not so.")
    stops = desk.proposed(order="7")
    about["run_id"] = stops.run_id
    cancel_run(**about, reason="No more.", by=person(opal), clock=db_clock)
    return Cases(desk, desk.approved(order="8"), fresh(unknown), old)


def ids_for(parameter: str) -> list[str]:
    name = OTHERWISE.get(parameter, parameter).removesuffix("_id")
    models: dict[str, Any] = {"run": Run, "proposal": Proposal, "command": Command, "packet": RepairPacket}
    models["document"] = Document
    return [str(pk) for pk in models[name].objects.values_list("pk", flat=True)] if name in models else []


def places_of(address: Address) -> Iterator[str]:
    names = [name for name in address.parameters if name not in WORDS]
    if not names and address.text.startswith(LISTS):
        yield address.of(WORDS)
    for value in ids_for(names[-1]) if names else ():
        found = WORDS | {names[-1]: value}
        if names[-1] == "document_id":
            found["run_id"] = str(Document.objects.get(pk=value).run_id)
        if set(names) <= set(found):
            yield address.of(found)


def every_answer(desk: Desk) -> Iterator[tuple[str, HttpResponse]]:
    """Each list, and each address of what belongs to a run, read by a person with all roles and by a token."""
    people = signed_in(make_user(desk.tenant, "all", roles=list(Role)))
    token = automation(token_for(desk.tenant, "reads-all"))
    for caller in (people, token):
        caller.client.raise_request_exception = False
    for address in ADDRESSES:
        caller: Caller = token if address.text.startswith("/api/") else people
        for place in places_of(address):
            yield address.text, ask(caller, "get", place)


def go_on(desk: Desk, rounds: int = 3) -> None:
    """What workers and sweep do meanwhile, and again each time that leases and pauses have gone by."""
    desk.till.findings = [Finding("no_answer")] * 20
    for _ in range(rounds):
        desk.work()
        desk.advance()
        look_around()
        for table in ("workflows_command", "workflows_step"):
            as_superuser(
                f"UPDATE {table} SET lease_until = lease_until - interval '1 hour',"
                " due_at = CASE WHEN due_at IS NOT NULL THEN least(due_at, clock_timestamp()) END"
            )


def nothing_is_lost() -> None:
    quarantined = Command.objects.filter(failure_code="quarantined").count()
    lost = Attempt.objects.filter(outcome="lease_over").count()
    steps = Step.objects.filter(lost_leases__gt=0).count()
    assert (quarantined, lost, steps, Command.objects.filter(status="claimed").count()) == (0, 0, 0, 0)


@each_column
def test_damage_is_told_to_whoever_reads_and_loses_no_work(cases: Cases, model: Any, name: str) -> None:
    damaged = damage(model, name)
    assert damaged > 0
    bad = {(at, answer.status_code) for at, answer in every_answer(cases.desk) if answer.status_code >= 500}
    assert bad == set()
    go_on(cases.desk)
    nothing_is_lost()


def test_what_people_wrote_around_cases_may_be_damaged_as_well() -> None:
    """All of it at once, on every page of somebody with all roles."""
    tenant = plant("ours")
    as_superuser("UPDATE repair_incident SET remedy = 'x', signal = 'x'")
    damaged = {f"{model.__name__}.{name}" for model, name in COLUMNS if damage(model, name)}
    assert damaged >= NOT_IN_CASES - {"Proposal.end_words", "Rejection.lifted_why", "Sample.words"}
    person_with_all = signed_in(make_user(tenant, "all-roles", roles=list(Role)))
    person_with_all.client.raise_request_exception = False
    for address in ADDRESSES:
        ids = {
            name: id_for(OTHERWISE.get(name, name), tenant)
            for name in address.parameters
            if name not in WORDS
        }
        answer = ask(person_with_all, "get", address.of(WORDS | ids))
        assert answer.status_code < 500 or address.text == "/readyz", address.text


@pytest.mark.parametrize(
    "raw", [b"", b"\x01" * 11, b"\x01" * 20, GARBAGE], ids=["mark", "nonce", "cut", "whole"]
)
def test_each_kind_of_damage_reads_the_same(cases: Cases, raw: bytes) -> None:
    damage(Proposal, "consequence", raw)
    damage(Proposal, "affected", raw)
    found = Proposal.objects.get(pk=cases.ready.proposal_id)
    assert (found.consequence, found.affected) == (DAMAGED_TEXT, [])


@pytest.mark.parametrize("name", ["volatile", "reason", "contract", "view"])
def test_nothing_is_asked_again_from_what_is_damaged(cases: Cases, name: str) -> None:
    from access.models import User
    from common.errors import Refused

    damage(Proposal, name)
    opal = User.objects.get(username="opal")
    with pytest.raises(Refused) as caught:
        ask_once_more(cases.desk, cases.lapsed.run_id, opal)
    assert caught.value.code in ("contract_changed", "uninspectable")
    assert isinstance(caught.value, ContractChanged) or name == "view"


@pytest.mark.parametrize("name", ["volatile", "reason", "view", "consequence"])
def test_what_cannot_be_taken_over_goes_to_a_person(cases: Cases, name: str) -> None:
    """Who had approved may do so no longer, so it would be asked anew as a next version."""
    from access.actions import deactivate_user
    from tests.workflows.counter import ADMIN

    damage(Proposal, name)
    deactivate_user(user=cases.desk.ada, by=ADMIN, clock=db_clock)
    go_on(cases.desk)
    end = end_of(cases.ready)
    assert (end["command"], end["step"], end["packets"]) == (
        "void(reviewer)", "waiting(person)", ["command_digest"],
    )  # fmt: skip
    nothing_is_lost()


# -- keys ---------------------------------------------------------------------------------------------------------


def wrap_with_garbage(run_id: Any, *, keep_name: bool) -> None:
    kept = "substr(wrapped, 1, 8) ||" if keep_name else ""
    as_superuser(f"UPDATE common_contentkey SET wrapped = {kept} %s WHERE run_id = %s", GARBAGE, run_id)


def test_work_whose_key_is_missing_waits_and_is_done_once_it_is_back(cases: Cases, settings: Any) -> None:
    mine = key()
    settings.PLACET_CONTENT_KEYS = mine
    command = cases.desk.approved(order="9")
    settings.PLACET_CONTENT_KEYS = ""
    before = fresh(command)
    go_on(cases.desk, rounds=7)
    after = fresh(command)
    assert (after.status, after.claims, after.tries) == ("ready", before.claims, 0)
    assert open_packets(command.run_id) == []
    settings.PLACET_CONTENT_KEYS = mine
    cases.desk.till.answers.clear()
    go_on(cases.desk, rounds=1)
    assert fresh(command).status == "confirmed"


def test_steps_whose_key_is_missing_wait_too(desk: Desk, settings: Any) -> None:
    mine = settings.PLACET_CONTENT_KEYS = key()
    run = desk.start()
    settings.PLACET_CONTENT_KEYS = ""
    go_on(desk)
    assert Run.objects.get(pk=run.pk).status == "queued"
    settings.PLACET_CONTENT_KEYS = mine
    desk.advance()
    assert Run.objects.get(pk=run.pk).status == "waiting_for_approval"


def test_every_answer_names_a_missing_key(cases: Cases, settings: Any) -> None:
    settings.PLACET_CONTENT_KEYS = key()
    cases.desk.approved(order="9")
    proposal = cases.desk.proposed(order="10")
    settings.PLACET_CONTENT_KEYS = ""
    codes = {answer.status_code for _, answer in every_answer(cases.desk)}
    assert 500 not in codes
    ada = signed_in(cases.desk.ada)
    refused(ada.get(f"/proposals/{proposal.pk}/view"), 503, "content_key_missing")
    page = ada.client.get(f"/review/{proposal.pk}/")
    assert (page.status_code, "PLACET_CONTENT_KEYS" in page.content.decode()) == (503, True)


@pytest.mark.parametrize("keep_name", [True, False])
def test_a_damaged_key_stops_its_run_alone(cases: Cases, keep_name: bool) -> None:
    for command in (cases.ready, cases.unknown):
        wrap_with_garbage(command.run_id, keep_name=keep_name)
    other = cases.desk.approved(order="9")
    assert {a.status_code for _, a in every_answer(cases.desk)} & {500, 502} == set()
    cases.desk.till.answers.clear()
    go_on(cases.desk, rounds=6)
    assert fresh(other).status == "confirmed"
    assert fresh(cases.unknown).status == "unknown"
    nothing_is_lost()
    if keep_name:  # nobody has another key: it ends, and a person is told
        assert end_of(cases.ready)["command"] == "void(digest)"
        assert open_packets(cases.ready.run_id) == ["command_digest"]
    else:  # to us it is a key that somebody else may have
        assert fresh(cases.ready).status == "ready"
