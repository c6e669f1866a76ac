"""Who acts when a command is typed on the server, and how such commands find what they are about."""

import getpass
from collections.abc import Callable
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.models import Agent, Group, User
from audit.actors import Actor, Owner, Via
from common.errors import NotFound, Refused
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


class Verbs(BaseCommand):
    """A command with verbs: each has its arguments, and a method that carries it out and says what was done."""

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        """Declare the verbs: ``add(name, method, help, *arguments)`` gives the parser for their options."""
        raise NotImplementedError

    def add_arguments(self, parser: CommandParser) -> None:
        parsers = parser.add_subparsers(dest="verb", required=True)

        def add(name: str, do: Callable[[dict[str, Any]], str], says: str, *arguments: str) -> CommandParser:
            made: CommandParser = parsers.add_parser(name, help=says)
            made.set_defaults(do=do)
            for argument in arguments:
                made.add_argument(argument)
            return made

        self.verbs(add)

    def handle(self, **options: Any) -> None:
        try:
            self.stdout.write(options["do"](options))
        except NotFound:
            raise CommandError("There is no such thing.") from None
        except Refused as refusal:
            raise CommandError(refusal.message) from None


def known_agent(tenant: Tenant, name: str) -> Agent:
    return agent_named(tenant, name) or _missing(f"There is no automation {name!r}.")


def known_group(tenant: Tenant, name: str) -> Group:
    return group_named(tenant, name) or _missing(f"There is no group {name!r}.")
