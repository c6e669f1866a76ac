"""The demo's organisation: people who can sign in, tokens, and a first handful of cases.

Everything here goes through the same actions that pages and API use. It may run again and again: what is
there stays, and passwords are derived from the installation's secret, so they are the same every time.
"""

import json
from base64 import b32encode
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils.crypto import salted_hmac

from access import tokens
from access.actions import add_to_group, create_agent, create_group, create_tenant, create_user, issue_token
from access.enums import Role, Scope
from access.models import Agent, ApiToken, Group, User
from audit.actors import Actor, Owner, Via
from common.clock import Clock
from common.models import Tenant
from workflows.actions.runs import Requester, Source, start_run
from workflows.models import Run

SLUG, WORKFLOW = "demo", "refund-triage"
GROUPS = ("Refund desk", "Finance")
EVENTS = Path(__file__).with_name("demo_events.jsonl")
TOKEN_LIFE = timedelta(days=365)
SAMPLE_INPUT = {
    "customer_id": "c-9",
    "requester_email": "ivan.petrenko@example.com",
    "order_id": "9016",
    "message": "The headphones arrived broken. I would like my money back.",
}
_BY = Actor(performed_by="command:demo", via=Via.COMMAND_LINE, owner=Owner.PERSON)


@dataclass(frozen=True)
class Person:
    username: str
    name: str
    role: Role

    @property
    def password(self) -> str:
        """Sixteen letters and digits in four groups: eighty bits, easy to type."""
        digest = salted_hmac("placet.demo.password", self.username, algorithm="sha256").digest()
        text = b32encode(digest[:10]).decode().lower()
        return "-".join(text[start : start + 4] for start in range(0, 16, 4))


@dataclass(frozen=True)
class Automation:
    """An automation and what its token may do; it acts for the operator, who never reviews."""

    role: str
    name: str
    scopes: tuple[Scope, ...]


PEOPLE = (
    Person("rosa", "Rosa Engel", Role.REVIEWER),
    Person("ravi", "Ravi Menon", Role.REVIEWER),
    Person("olga", "Olga Novak", Role.OPERATOR),
    Person("anna", "Anna Berg", Role.AUDITOR),
    Person("adam", "Adam Okoro", Role.ADMIN),
)
AUTOMATIONS = (
    Automation(
        "proposer",
        "intake",
        (Scope.RUNS_WRITE, Scope.RUNS_READ, Scope.PROPOSALS_WRITE, Scope.PROPOSALS_READ, Scope.RESULTS_READ),
    ),
    Automation("auditor", "audit-export", (Scope.RUNS_READ, Scope.PROPOSALS_READ, Scope.AUDIT_READ)),
)


def make_demo(*, known_tokens: dict[str, str], clock: Clock) -> dict[str, Any]:
    """Makes what is missing; users and tokens by role, for `demo.json`.

    `known_tokens` are those of the last time: the database has only their fingerprints.
    """
    tenant = Tenant.objects.filter(slug=SLUG).first()
    if tenant is None:
        tenant = create_tenant(slug=SLUG, name="Demo shop", by=_BY, clock=clock)
    users = {person.username: _user(tenant, person, clock=clock) for person in PEOPLE}
    _fill_groups(tenant, users, clock=clock)
    operator = next(users[person.username] for person in PEOPLE if person.role == Role.OPERATOR)
    made = {
        automation.role: _token(
            tenant, automation, operator, known_tokens.get(automation.role, ""), clock=clock
        )
        for automation in AUTOMATIONS
    }
    return {"users": _users_by_role(), "tokens": made, "sample_input": SAMPLE_INPUT}


def start_cases(*, clock: Clock) -> int:
    """Starts the demo's cases in an organisation that has none yet; how many."""
    tenant = Tenant.objects.get(slug=SLUG)
    if Run.objects.filter(tenant=tenant).exists():
        return 0
    operator = User.objects.get(username="olga")
    requester = Requester(on_behalf_of=f"user:{operator.id}", excluded_users=(operator.id,))
    by = Actor(performed_by="api:intake", via=Via.COMMAND_LINE, owner=Owner.AUTOMATION)
    lines = [json.loads(line) for line in EVENTS.read_text().splitlines()]
    for line in lines:
        source = Source(system="demo", event_id=line["event"])
        start_run(
            tenant_id=tenant.id, workflow=WORKFLOW, source=source, input=line["input"],
            by=by, clock=clock, requester=requester,
        )  # fmt: skip
    return len(lines)


def _user(tenant: Tenant, person: Person, *, clock: Clock) -> User:
    user = User.objects.filter(username=person.username, memberships__tenant=tenant).first()
    return user or create_user(
        tenant=tenant, username=person.username, password=person.password, display_name=person.name,
        email=f"{person.username}@example.com", roles=[person.role], by=_BY, clock=clock,
    )  # fmt: skip


def _fill_groups(tenant: Tenant, users: dict[str, User], *, clock: Clock) -> None:
    """Every reviewer may decide every kind of question."""
    for name in GROUPS:
        group = Group.objects.filter(tenant=tenant, name=name).first()
        group = group or create_group(tenant=tenant, name=name, by=_BY, clock=clock)
        for person in PEOPLE:
            if person.role == Role.REVIEWER:
                add_to_group(group=group, user=users[person.username], by=_BY, clock=clock)


def _token(tenant: Tenant, automation: Automation, acts_for: User, known: str, *, clock: Clock) -> str:
    """The known token if it still works, else a new one."""
    valid = ApiToken.objects.filter(
        sha256=tokens.fingerprint(known), tenant=tenant, revoked_at=None, expires_at__gt=clock()
    )
    if known and valid.exists():
        return known
    agent = Agent.objects.filter(tenant=tenant, name=automation.name).first()
    agent = agent or create_agent(tenant=tenant, name=automation.name, acts_for=acts_for, by=_BY, clock=clock)
    text, _ = issue_token(agent=agent, scopes=automation.scopes, life=TOKEN_LIFE, by=_BY, clock=clock)
    return text


def _users_by_role() -> dict[str, dict[str, str]]:
    roles = dict.fromkeys(person.role.value for person in PEOPLE)
    return {
        role: {person.username: person.password for person in PEOPLE if person.role == role} for role in roles
    }
