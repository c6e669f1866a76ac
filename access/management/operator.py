"""Who acts when a command is typed on the server, and how such commands find what they are about."""

import getpass
from typing import NoReturn

from django.core.management.base import CommandError

from access.models import Agent, Group, User
from audit.actors import Actor, Owner, Via
from common.models import Tenant


def at_the_console() -> Actor:
    """The account that typed the command; history names it."""
    return Actor(performed_by=f"command_line:{getpass.getuser()}", via=Via.COMMAND_LINE, owner=Owner.PERSON)


def tenant_named(slug: str) -> Tenant:
    return Tenant.objects.filter(slug=slug).first() or _missing(f"There is no tenant {slug!r}.")


def person_named(username: str) -> User:
    return User.objects.filter(username=username).first() or _missing(f"There is nobody named {username!r}.")


def group_named(tenant: Tenant, name: str) -> Group | None:
    return Group.objects.filter(tenant=tenant, name=name).first()


def agent_named(tenant: Tenant, name: str) -> Agent | None:
    return Agent.objects.filter(tenant=tenant, name=name).first()


def _missing(message: str) -> NoReturn:
    raise CommandError(message)
