"""Refusals: normal answers that are not success. Each has a stable code and its own sentence."""

from typing import Any, ClassVar


class Refused(Exception):
    """The request was understood and is refused.

    A subclass states its ``code`` (public, from the closed list in ``docs/errors.md``), its HTTP status, and, as its
    docstring, the sentence that people read. ``details`` are public facts that help to go on: ids, lists of codes.
    """

    code: ClassVar[str] = "refused"
    http_status: ClassVar[int] = 409

    def __init__(self, message: str = "", **details: Any) -> None:
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.details = details
        super().__init__(self.message)


class NotFound(Refused):
    """There is no such thing here."""

    code = "not_found"
    http_status = 404


class InvalidInput(Refused):
    """What was sent does not fit its schema."""

    code = "invalid"
    http_status = 422


def all_refusals() -> list[type[Refused]]:
    """Every subclass that is loaded, for the documented list of codes."""
    found, todo = [], list(Refused.__subclasses__())
    while todo:
        found.append(todo.pop())
        todo.extend(found[-1].__subclasses__())
    return sorted(found, key=lambda refusal: refusal.code)
