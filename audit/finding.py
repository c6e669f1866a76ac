"""Finding events by what a person types: an id, the beginning of a digest or an id, a kind, an actor, a record.

This app knows no runs. A named upward call asks those that do which runs belong to a word such as an order.
"""

import re
from collections.abc import Callable, Collection
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q

from audit.names import PERSON
from audit.through import words_for

RunsNamed = Callable[[UUID, str], Collection[UUID]]

_HEX: Final = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})(?:…[0-9a-f]{4})?", re.IGNORECASE)
_MOST_PEOPLE: Final = 50
_runs_named: list[RunsNamed] = []
RunsDoing = Callable[[UUID, str, str], Any]
"""(tenant, operation or empty, target or empty): a query for the ids of the runs in which that was proposed."""
_runs_doing: list[RunsDoing] = []


def register(finder: RunsNamed) -> None:
    """Called when the apps are loaded: ``finder`` names the runs of a tenant that a word belongs to."""
    if finder not in _runs_named:
        _runs_named.append(finder)


def register_doing(finder: RunsDoing) -> None:
    """Called when the apps are loaded."""
    if finder not in _runs_doing:
        _runs_doing.append(finder)


def of_runs_doing(tenant_id: UUID, operation: str, target: str) -> Q:
    """The events of runs in which this operation was proposed, or something on this target."""
    found = Q(pk__in=[])
    for finder in _runs_doing:
        found |= Q(run_id__in=finder(tenant_id, operation, target))
    return found


def found_by(tenant_id: UUID, text: str) -> Q:
    """The events that ``text`` speaks of. Always a condition inside one tenant's events."""
    words = " ".join(text.split())[:100]
    whole = as_uuid(words)
    if whole is not None:
        through = Q(through__in=[f"token:{whole}", f"endpoint:{whole}"])
        named = Q(id=whole) | Q(run_id=whole) | Q(subject_id=whole) | Q(performed_by=f"{PERSON}{whole}")
        return named | through
    return _by_way(tenant_id, words) | _by_beginning(words) | _by_words(tenant_id, words)


def as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def id_range(digits: str) -> tuple[UUID, UUID]:
    """The smallest and the largest id that begin with these hex digits."""
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def hex_digits(text: str) -> str:
    """The hex digits that begin a digest or an id, whether grouped, shortened or with its algorithm; else empty."""
    match = _HEX.fullmatch(text.replace(" ", "").replace("-", ""))
    return match[1].lower() if match else ""


def _by_way(tenant_id: UUID, words: str) -> Q:
    """What came through a token that is named by its beginning, and what happened to the token itself."""
    named = words_for(tenant_id, words)
    if not named:
        return Q(pk__in=[])
    things = [ident for word in named if (ident := as_uuid(word.partition(":")[2]))]
    return Q(through__in=named) | Q(subject_id__in=things)


def _by_beginning(words: str) -> Q:
    digits = hex_digits(words)
    if not digits:
        return Q(pk__in=[])
    found = Q(digest__startswith=digits)
    if len(digits) <= 32:
        first, last = id_range(digits)
        found |= Q(run_id__range=(first, last)) | Q(subject_id__range=(first, last))
    return found


def _by_words(tenant_id: UUID, words: str) -> Q:
    runs = {run for finder in _runs_named for run in finder(tenant_id, words)}
    found = Q(kind__startswith=words.lower()) | Q(performed_by__icontains=words) | Q(reason__iexact=words)
    people = get_user_model()._default_manager.filter(
        Q(display_name__icontains=words) | Q(username__iexact=words), memberships__tenant_id=tenant_id
    )
    actors = [f"{PERSON}{pk}" for pk in people.values_list("pk", flat=True)[:_MOST_PEOPLE]]
    return found | Q(run_id__in=runs) | Q(performed_by__in=actors)
