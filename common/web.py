"""Views that say which methods read and which write, and are held to it."""

import re
from collections.abc import Callable, Collection, Generator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final, TypeVar, cast

from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

_READS: Final = re.compile(
    r"[\s(]*(SELECT|WITH|VALUES|TABLE|SHOW|SET|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|DECLARE|FETCH|CLOSE)\b",
    re.IGNORECASE,
)
# `WITH` may hide a change in any of its parts; `FOR UPDATE` and `FOR NO KEY UPDATE` are locks, not changes.
_CHANGES: Final = re.compile(
    r"\b(INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO|(?<!FOR\s)(?<!KEY\s)UPDATE)\b", re.IGNORECASE
)


class WriteInRead(RuntimeError):
    """A view that only reads tried to change the database. This is a programming error."""


def is_read(sql: str) -> bool:
    """Whether a statement leaves every row as it is."""
    found = _READS.match(sql)
    return found is not None and not (found[1].upper() == "WITH" and _CHANGES.search(sql))


def _refuse_writes(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
    if not is_read(str(sql)):
        raise WriteInRead(f"{WriteInRead.__doc__} It began with {str(sql).lstrip()[:40]!r}.")
    return execute(sql, params, many, context)


@contextmanager
def _refusing_writes() -> Generator[None]:
    """On whichever connection the view works."""
    with ExitStack() as stack:
        for one in {id(known): known for known in connections.all(initialized_only=True)}.values():
            stack.enter_context(one.execute_wrapper(_refuse_writes))
        yield


def http_methods(
    *, read: Collection[str] = ("GET", "HEAD"), write: Collection[str] = ()
) -> Callable[[View], View]:
    """Allow these methods only, and make every SQL write raise `WriteInRead` while a reading one is answered.

    A template response is rendered inside, so that its queries count too. What middleware does before and after,
    such as storing the session, is outside.
    """
    allowed = [*read, *write]

    def decorate(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method in write:
                return view(request, *args, **kwargs)
            if request.method not in read:
                return HttpResponseNotAllowed(allowed)
            with _refusing_writes():
                return rendered(view(request, *args, **kwargs))

        return cast("View", checked)

    return decorate


def rendered(response: HttpResponseBase) -> HttpResponseBase:
    """A template response, rendered now: with the queries of its template."""
    render: Callable[[], HttpResponse] | None = getattr(response, "render", None)
    return render() if callable(render) else response
