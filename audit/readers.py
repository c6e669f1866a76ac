"""Who may read the history of a tenant: its auditors and admins.

`access` sets ``request.membership``; this layer lies below it and only reads what it finds there. Without a
membership, or with one that does not answer, nothing is shown.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from audit.actors import Actor, Owner, Via
from audit.through import through_session

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
ROLES: Final = ("auditor", "admin")
CONTENTS: Final = ("reviewer", "auditor", "owner")
"""Who is shown personal values elsewhere, too."""
WHO: Final = (
    "The history is open to auditors and admins. What happened to a run stands on the page of that run."
)


def may_read_history(membership: Any) -> bool:
    """Whether this membership shows its person the whole history of its tenant."""
    return membership is not None and bool(membership.has_role(*ROLES))


def may_take_contents(membership: Any) -> bool:
    """Whether contracts and views, which hold personal values, come along in what this person takes out."""
    return membership is not None and bool(membership.has_role(*CONTENTS))


def for_history_readers(view: View) -> View:
    """Only for people who may read the history: to the sign-in page, or 403."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        membership = getattr(request, "membership", None)
        if membership is None:
            return redirect_to_login(request.get_full_path() if request.method == "GET" else "")
        if not may_read_history(membership):
            raise PermissionDenied(WHO)
        return view(request, *args, **kwargs)

    return cast("View", guarded)


def for_members(view: View) -> View:
    """Only for people of the tenant, of whichever role: else to the sign-in page."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if getattr(request, "membership", None) is None:
            return redirect_to_login(request.get_full_path() if request.method == "GET" else "")
        return view(request, *args, **kwargs)

    return cast("View", guarded)


def reader_actor(request: HttpRequest) -> Actor:
    """The person who looks, as the actor of what they set off."""
    user_id = request.membership.user_id  # type: ignore[attr-defined]
    return Actor(
        performed_by=f"user:{user_id}", via=Via.SESSION, owner=Owner.PERSON, user_id=user_id,
        request_id=str(getattr(request, "request_id", "")), through=through_session(request),
    )  # fmt: skip
