"""Who acts on an account: its person, or somebody who has not shown who they are."""

from django.http import HttpRequest

from access.models import User
from audit.actors import Actor, Owner, Via
from audit.through import through_session


def user_actor(request: HttpRequest, user: User) -> Actor:
    """The person, in whichever tenants they are."""
    return Actor(
        performed_by=f"user:{user.pk}", via=Via.SESSION, owner=Owner.PERSON, request_id=_request_id(request),
        user_id=user.pk, through=through_session(request),
    )  # fmt: skip


def stranger_of(request: HttpRequest) -> Actor:
    """Somebody unknown."""
    return Actor(
        performed_by="anonymous", via=Via.SESSION, owner=Owner.PERSON, request_id=_request_id(request)
    )


def _request_id(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))
