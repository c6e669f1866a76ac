"""Lists of people, groups, automations and tokens: formatting only. Cells with markup are in templates."""

from typing import Any, ClassVar

import django_tables2 as tables

from access.enums import Role
from access.models import Agent, ApiToken, Group, Membership
from common.display import visible

TEMPLATE = "components/table.html"


def cell(template: str, header: str, **more: Any) -> tables.TemplateColumn:
    """A column of which each cell is a template of ours."""
    return tables.TemplateColumn(
        template_name=template, verbose_name=header, orderable=False, empty_values=(), **more
    )


def plain(header: str, **more: Any) -> tables.Column:
    return tables.Column(verbose_name=header, orderable=False, empty_values=(), **more)


def role_words(roles: list[str]) -> str:
    return ", ".join(str(dict(Role.choices).get(role, role)) for role in roles) or "no role"


class Listing(tables.Table):  # type: ignore[misc]
    """A table of the desk: ``says`` is its caption for screen readers."""

    says = ""

    class Meta:
        template_name = TEMPLATE
        orderable = False


class PeopleTable(Listing):
    says = "People, by name"
    who = cell("access/people/columns/person.html", "Person")
    roles = plain("Roles")
    groups = plain("Reviews for")
    state = cell("access/people/columns/person_state.html", "State")

    class Meta(Listing.Meta):
        sequence: ClassVar[list[str]] = ["who", "state", "roles", "groups"]

    def render_roles(self, record: Membership) -> str:
        return role_words(record.roles)

    def render_groups(self, record: Membership) -> str:
        return ", ".join(visible(group.name) for group in record.groups.all()) or "–"


class GroupTable(Listing):
    says = "Groups, by name"
    name = cell("access/people/columns/group.html", "Group")
    people = plain("People")

    def render_people(self, record: Group) -> str:
        return str(record.people)  # type: ignore[attr-defined]


class AgentTable(Listing):
    says = "Automations, by name"
    name = cell("access/people/columns/agent.html", "Automation")
    state = cell("access/people/columns/agent_state.html", "State")
    acts_for = plain("Acts for")
    may = plain("May ask for")
    tokens = plain("Valid tokens")

    def render_acts_for(self, record: Agent) -> str:
        return visible(str(record.acts_for) if record.acts_for else record.acts_for_system) or "nobody named"

    def render_may(self, record: Agent) -> str:
        return f"{bounds(record.workflows, 'workflow')}, {bounds(record.operations, 'operation')}"

    def render_tokens(self, record: Agent) -> str:
        return str(record.valid_tokens)  # type: ignore[attr-defined]


class TokenTable(Listing):
    says = "Tokens, newest first"
    prefix = cell("access/people/columns/token.html", "Token")
    state = cell("access/people/columns/token_state.html", "State")
    agent = cell("access/people/columns/token_agent.html", "Automation")
    scopes = plain("May")
    expires_at = cell("access/people/columns/token_end.html", "Ends")
    last_used_at = cell("access/people/columns/token_used.html", "Last used")
    acts = cell("access/people/columns/token_acts.html", "", attrs={"th": {"class": "num"}})

    class Meta(Listing.Meta):
        pass

    def render_scopes(self, record: ApiToken) -> str:
        return ", ".join(record.scopes) or "read the catalog only"


def bounds(names: list[str] | None, thing: str) -> str:
    """What an automation may ask for, in words."""
    if names is None:
        return f"any {thing}"
    return ", ".join(visible(name) for name in names) or f"no {thing}"
