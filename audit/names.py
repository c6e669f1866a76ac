"""What people read for an actor of the history: a name instead of an id, a word instead of a code."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from django.contrib.auth import get_user_model

from common.display import visible

PERSON: Final = "user:"


def names_of(actors: Iterable[str]) -> dict[str, str]:
    """The display names of the people among ``actors``, by actor; one query, none where there is no person."""
    ids = {actor: ident for actor in actors if (ident := person_id(actor)) is not None}
    if not ids:
        return {}
    people = get_user_model()._default_manager.in_bulk(set(ids.values()))
    return {actor: str(people[ident]) for actor, ident in ids.items() if ident in people}


def said_in(tenant_id: UUID, actor: str) -> str:
    """An actor that somebody asks for: a person of the tenant by name, everybody else as it was asked."""
    ident = person_id(actor)
    if ident is None:
        return actor
    people = get_user_model()._default_manager
    found = people.filter(pk=ident, memberships__tenant_id=tenant_id).first()
    return visible(str(found)) if found is not None else actor


def person_id(actor: str) -> UUID | None:
    """The user id in ``user:<uuid>``; None for every other actor."""
    if not actor.startswith(PERSON):
        return None
    try:
        return UUID(actor.removeprefix(PERSON))
    except ValueError:
        return None


def spoken(actor: str, names: Mapping[str, str]) -> str:
    """An actor as text for the page, with hidden characters made visible."""
    if actor in names:
        return visible(names[actor])
    kind, _, rest = visible(actor).partition(":")
    match kind:
        case "worker":
            return f"worker {rest}"
        case "clock":
            return f"the clock ({rest})"
        case "rule":
            rule, _, version = rest.partition("@")
            return f"rule {rule}, version {version}" if version else f"rule {rule}"
        case "command_line":
            return f"command line ({rest})"
    return visible(actor)
