"""Who may see a page: decorators for views, on top of `access.policies`."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from access.enums import Role
from access.policies import RoleMissing, check_role
from access.sessions import ReauthRequired, leave_for, recently_authenticated
from common.problems import API_ROOT

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def role_required(*roles: Role) -> Callable[[View], View]:
    """Only for members with one of the roles (any member where none is named): else to the sign-in page, or 403."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            membership = getattr(request, "membership", None)
            if membership is None:
                return to_sign_in(request)
            try:
                if roles:
                    check_role(membership, *roles)
            except RoleMissing as refusal:
                raise PermissionDenied(refusal.message) from refusal
            return view(request, *args, **kwargs)

        return cast("View", guarded)

    return decorate


def signed_in_required(view: View) -> View:
    """Only for signed-in people, of whichever role: else to the sign-in page."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(request, *args, **kwargs) if request.user.is_authenticated else to_sign_in(request)

    return cast("View", guarded)


def recent_authentication_required(view: View) -> View:
    """Only for people who have proved within PLACET_REAUTH_S who they are: else to the page where they do, and back."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if recently_authenticated(request):
            return view(request, *args, **kwargs)
        if request.path.startswith(API_ROOT):
            raise ReauthRequired
        return leave_for(request, confirm_address(back=_way_back(request)))

    return cast("View", guarded)


def confirm_address(*, back: str, digest: str = "") -> str:
    """The page where a person confirms that it is them: for the action with ``digest``, and then back."""
    way = {name: value for name, value in (("next", back), ("digest", digest)) if value}
    address = reverse("confirm")
    return f"{address}?{urlencode(way, safe='/')}" if way else address


def to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """The way to the sign-in page and back; htmx is told to leave the page, not to put a form into it."""
    address = resolve_url(settings.LOGIN_URL)
    back = _way_back(request)
    if back:
        address = f"{address}?{urlencode({'next': back}, safe='/')}"
    if _is_htmx(request):
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)


def _is_htmx(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def _way_back(request: HttpRequest) -> str:
    """The page the person was on. A form's address is none: after sign-in it would be asked for with GET."""
    if not _is_htmx(request):
        return request.get_full_path() if request.method == "GET" else ""
    try:
        page = urlsplit(request.headers.get("HX-Current-URL", ""))
    except ValueError:  # brackets that hold no address
        return ""
    if page.netloc != request.get_host():
        return ""
    return f"{page.path}?{page.query}" if page.query else page.path
