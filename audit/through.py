"""Through what an actor came: words such as ``token:<uuid>``, what they are called, and how one is found.

This app knows no tokens and no endpoints. Those that do register here: what is the word of something that a person
names, and what do people read for a word.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from common.display import visible

KINDS: Final = {"token": "token", "session": "session", "endpoint": "endpoint"}
_HANDLE: Final = "placet.session-handle"


def through_session(request: HttpRequest) -> str:
    """The word for the session of a request: the same for all that is done in one, and of no use to anybody else.

    Derived, with the installation's key, from what the cookie says; nobody comes from it to the cookie. Empty where
    there is no session yet.
    """
    key = getattr(getattr(request, "session", None), "session_key", None)
    return f"session:{salted_hmac(_HANDLE, key, algorithm='sha256').hexdigest()[:16]}" if key else ""


@dataclass(frozen=True, slots=True)
class Named:
    """One thing to come through: its name for people, whose it is, and the page on which it stands."""

    name: str
    whose: str
    href: str


NamesOf = Callable[[UUID, Collection[UUID]], Mapping[UUID, Named]]
"""Of a tenant's rows with these ids."""
Finder = Callable[[UUID, str], Collection[UUID]]
"""(tenant, what a person typed): the ids of what is meant."""
_known: dict[str, tuple[NamesOf, Finder]] = {}


def register(kind: str, names: NamesOf, find: Finder) -> None:
    """Called when the apps are loaded."""
    _known[kind] = (names, find)


def words_for(tenant_id: UUID, text: str) -> list[str]:
    """The words in the history of what a person names: the word itself, or whatever it belongs to by its name.

    A word that nobody has is one all the same: nothing is found by it, whether it never was or is another tenant's.
    """
    text = text.strip()
    if text.partition(":")[0] in KINDS:
        return [text]
    return [f"{kind}:{ident}" for kind, (_, find) in _known.items() for ident in find(tenant_id, text)]


def through_names(tenant_id: UUID, words: Iterable[str | None]) -> dict[str, Named]:
    """What people read for these words; one query for each kind of thing among them."""
    by_kind: dict[str, dict[UUID, str]] = {}
    for word in words:
        kind, _, rest = (word or "").partition(":")
        ident = _uuid(rest) if kind in _known else None
        if word and ident is not None:
            by_kind.setdefault(kind, {})[ident] = word
    found: dict[str, Named] = {}
    for kind, idents in by_kind.items():
        found |= {idents[ident]: named for ident, named in _known[kind][0](tenant_id, set(idents)).items()}
    return found


WAYS: Final = {"token": "with the token", "endpoint": "by a webhook, at the endpoint"}


def way(word: str | None, names: Mapping[str, Named]) -> str:
    """For a sentence: *with the token plc_3fGh…*; empty where the plain word for ``via`` says all that people need."""
    kind = (word or "").partition(":")[0]
    return f"{WAYS[kind]} {called(word, names)}" if kind in WAYS else ""


def called(word: str | None, names: Mapping[str, Named]) -> str:
    """The name of what it is, else what stands there."""
    return visible(names[word].name if word and word in names else (word or "").partition(":")[2])


def spoken_through(word: str | None, names: Mapping[str, Named]) -> str:
    """As text for the page: *token plc_3fGh… of api:intake*; empty where the event does not say."""
    kind = (word or "").partition(":")[0]
    if not word:
        return ""
    whose = names[word].whose if word in names else ""
    return f"{KINDS.get(kind, visible(kind))} {called(word, names)}{' of ' if whose else ''}{visible(whose)}"


def said_through(tenant_id: UUID, text: str) -> str:
    """What a filter by this text asks for, as text for the page: the token's name instead of its id."""
    names = through_names(tenant_id, words_for(tenant_id, text))
    return ", ".join(spoken_through(word, names) for word in names) or text


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
