"""A quarter of the actions must not run. They are set up before any worker is there, so none can be a moment faster."""

from collections.abc import Callable
from typing import Any, LiteralString

import psycopg

from approvals.models import Proposal
from common.clock import db_clock
from common.strictjson import canonicalize
from tests.faults.people import Action, Office, insist
from workflows.contracts import read_contract


def ways(office: Office, url: str) -> dict[str, Callable[[], Action]]:
    """What each of them is called, and how one is made."""
    return {
        "pending": lambda: _pending(office),
        "one_vote": lambda: _one_vote(office),
        "one_person": lambda: _one_person(office),
        "rejected": lambda: _rejected(office),
        "expired": lambda: _expired(office),
        "lapsed": lambda: office.approved("lapsed", "brief"),
        "revoked": lambda: _revoked(office),
        "role_lost": lambda: _role_lost(office),
        "tampered": lambda: _tampered(office, url),
        "seal_broken": lambda: _seal_broken(office, url),
        "withdrawn": lambda: _withdrawn(office),
        "old_pin": lambda: _old_pin(office),
        "superseded": lambda: _superseded(office),
    }


def set_up(office: Office, url: str, count: int) -> None:
    """That many, of every kind in turn; those that the clock must end have ended when this returns."""
    kinds = list(ways(office, url).values())
    for number in range(count):
        kinds[number % len(kinds)]()
    wait_until_brief_ones_are_over(office)


def wait_until_brief_ones_are_over(office: Office) -> None:
    from threading import Event

    brief = [action.proposal_id for action in office.actions if action.operation.endswith(".brief")]
    for _ in range(200):
        now = insist(db_clock)
        rows = Proposal.objects.filter(pk__in=brief)
        if all((row.execute_by or row.decide_by) < now for row in rows):
            return
        Event().wait(0.1)


def _pending(office: Office) -> Action:
    action = office.new("pending")
    office.propose(action)
    return action


def _one_vote(office: Office) -> Action:
    action = office.new("one_vote", amount="95.00")
    office.propose(action)
    office.vote(action, office.rita)
    return action


def _rejected(office: Office) -> Action:
    action = office.new("rejected")
    office.propose(action)
    office.vote(action, office.owen, "reject")
    return action


def _one_person(office: Office) -> Action:
    """Much money needs two people, and one says yes under two names."""
    action = office.new("one_person", amount="96.00")
    office.propose(action)
    accounts = [office.another_reviewer(f"{name}{action.number}") for name in ("anna", "ann")]
    office.link(*accounts)
    for account in accounts:
        office.vote(action, account)
    return action


def _role_lost(office: Office) -> Action:
    action = office.new("role_lost", amount="11.12")
    office.propose(action)
    mover = office.another_reviewer(f"mover{action.number}")
    office.vote(action, mover)
    office.take_role(mover)
    return action


def _expired(office: Office) -> Action:
    action = office.new("expired", "brief")
    office.propose(action)
    return action


def _revoked(office: Office) -> Action:
    action = office.new("revoked", amount="11.11")
    office.propose(action)
    leaver = office.another_reviewer(f"gone{action.number}")
    office.vote(action, leaver)
    office.deactivate(leaver)
    return action


def _tampered(office: Office, url: str) -> Action:
    action = office.approved("tampered")
    tamper(url, action)
    return action


def _seal_broken(office: Office, url: str) -> Action:
    action = office.approved("seal_broken")
    break_seal(url, action)
    return action


def tamper(url: str, action: Action) -> None:
    """Somebody with the database's highest rights and all keys seals another amount in the contract's own place: it
    opens as well as the approved bytes did, and only its digest differs.
    """
    proposal = insist(lambda: Proposal.objects.get(pk=action.proposal_id))
    contract = dict(read_contract(bytes(proposal.contract)))
    contract["arguments"] = {**contract["arguments"], "amount": "7.77"}
    column: Any = Proposal._meta.get_field("contract")
    _write(url, "UPDATE approvals_proposal SET contract = %s WHERE id = %s", [
        insist(lambda: column.sealed(proposal, canonicalize(contract))), action.proposal_id,
    ])  # fmt: skip


def break_seal(url: str, action: Action) -> None:
    """Somebody with the same rights and no key changes one bit: what is stored does not open any more."""
    last = "length(contract) - 1"
    _write(
        url,
        f"UPDATE approvals_proposal SET contract = set_byte(contract, {last}, get_byte(contract, {last}) # 1)"
        " WHERE id = %s",
        [action.proposal_id],
    )  # fmt: skip


def _write(url: str, sql: LiteralString, parameters: list[Any]) -> None:
    """Past every trigger of ours."""
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("SET session_replication_role = replica")
        assert database.execute(sql, parameters).rowcount == 1


def _withdrawn(office: Office) -> Action:
    action = office.approved("withdrawn")
    office.withdraw(action)
    return action


def _old_pin(office: Office) -> Action:
    action = office.approved("old_pin")
    office.block_customer(action)
    return action


def _superseded(office: Office) -> Action:
    action = office.approved("superseded")
    newer = office.new("pending", order=action.arguments["order"], amount="44.44")
    office.propose(newer, supersedes=action.proposal_id)
    made = insist(lambda: _successor_of(action))
    newer.proposal_id, newer.digest = made
    return action


def _successor_of(action: Action) -> tuple[object, str]:
    return Proposal.objects.values_list("pk", "digest").get(supersedes_id=action.proposal_id)
