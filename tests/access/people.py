"""People and automations for tests, made by the product's own actions."""

from datetime import timedelta

from access import actions
from access.enums import Role, Scope
from access.models import Agent, ApiToken, User
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.models import Tenant

INSTALLER = Actor(performed_by="command_line:tests", via=Via.COMMAND_LINE, owner=Owner.PERSON)
PASSWORD = "a long enough word"


def tenant(slug: str = "north") -> Tenant:
    return actions.create_tenant(slug=slug, name=slug.title(), by=INSTALLER, clock=db_clock)


def person(of: Tenant, username: str, *roles: Role) -> User:
    return actions.create_user(
        tenant=of, username=username, password=PASSWORD, roles=roles, by=INSTALLER, clock=db_clock
    )


def agent(of: Tenant, name: str = "intake", acts_for: User | None = None) -> Agent:
    return actions.create_agent(tenant=of, name=name, acts_for=acts_for, by=INSTALLER, clock=db_clock)


def token(
    of: Agent, *scopes: Scope, life: timedelta = timedelta(hours=1), by: Actor = INSTALLER
) -> tuple[str, ApiToken]:
    return actions.issue_token(agent=of, scopes=scopes, life=life, by=by, clock=db_clock)
