"""What the pages of people share: who may see and change, a page of confirmation, and what is shown once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.enums import Role
from access.models import Membership
from access.policies import PEOPLE_MANAGERS, PEOPLE_READERS
from access.sessions import leave_for, recently_authenticated
from access.web import confirm_address, role_required
from audit.actors import Actor
from common.errors import NotFound, Refused
from common.web import http_methods

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
READERS: Final = tuple(sorted(PEOPLE_READERS))
MANAGERS: Final = tuple(sorted(PEOPLE_MANAGERS))


def reads(view: View) -> View:
    """A page that admins and auditors read."""
    return http_methods(read=("GET", "HEAD"))(role_required(*READERS)(never_cache(_missing(view))))


def writes(view: View) -> View:
    """A form of admins: shown to GET, carried out by POST."""
    guarded = role_required(*MANAGERS)(never_cache(_missing(view)))
    return http_methods(read=("GET", "HEAD"), write=("POST",))(guarded)


def proven(back: str) -> Callable[[View], View]:
    """Only for people who have proved lately who they are; else to where they do, and back to the page ``back``.

    ``back`` is the name of an address with the view's own arguments: what was typed in a form is not kept.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if recently_authenticated(request):
                return view(request, *args, **kwargs)
            messages.info(request, "Confirm that it is you, then do it again: nothing was changed.", "wait")
            return leave_for(request, confirm_address(back=reverse(back, kwargs=kwargs)))

        return cast("View", guarded)

    return decorate


def _missing(view: View) -> View:
    """What belongs to another organisation answers like what does not exist."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except NotFound as missing:
            raise Http404 from missing

    return cast("View", guarded)


def reader_of(request: HttpRequest) -> Membership:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return membership


def actor_of(request: HttpRequest) -> Actor:
    return person_of(request)


def may_change(request: HttpRequest) -> bool:
    return reader_of(request).has_role(Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Asked:
    """A page that says in words what will happen, before it does."""

    title: str
    sentence: str
    points: Sequence[str]
    button: str
    back: str
    form: forms.Form | None = None
    hidden: Sequence[tuple[str, str]] = ()
    tab: str = "people"
    harmless: bool = False


def ask(request: HttpRequest, asked: Asked, *, refusal: str = "", status: int = 200) -> HttpResponse:
    """The page of confirmation; its form comes back to the same address with ``sure``."""
    context = {"asked": asked, "refusal": refusal}
    return render(request, "access/people/confirm.html", context, status=status)


def is_sure(request: HttpRequest) -> bool:
    return request.method == "POST" and request.POST.get("sure") == "yes"


def carry_out(
    request: HttpRequest, asked: Asked, do: Callable[[], Any], then: Callable[[Any], HttpResponse]
) -> HttpResponse:
    """Ask first; then do it and answer ``then`` of what it gave, or ask again and say why it was not done."""
    if not is_sure(request):
        return ask(request, asked)
    if asked.form is not None and not asked.form.is_valid():
        return ask(request, asked, status=422)
    try:
        given = do()
    except NotFound:
        raise
    except Refused as refusal:
        return ask(request, asked, refusal=refusal.message, status=refusal.http_status)
    return then(given)


def do_and_say(request: HttpRequest, asked: Asked, done: str, do: Callable[[str], object]) -> HttpResponse:
    """Ask first; then do it, with the reason where the form asks for one, and say so on the page ``back``."""

    def say(_: object) -> HttpResponse:
        messages.info(request, done, "ok")
        return redirect(asked.back)

    return carry_out(request, asked, lambda: do(asked.form.cleaned_data["why"] if asked.form else ""), say)


@dataclass(frozen=True, slots=True)
class Once:
    """A text that is shown this one time: nobody can look it up later."""

    title: str
    label: str
    text: str
    says: Sequence[str]
    back: str
    back_word: str
    tab: str = "people"


def show_once(request: HttpRequest, once: Once) -> HttpResponse:
    """The answer to the POST itself: kept nowhere, not in the session either, and told not to be cached."""
    return render(request, "access/people/once.html", {"once": once})


def made_from(request: HttpRequest, form: forms.Form, do: Callable[[], Any]) -> tuple[Any, int]:
    """What ``do`` made of a form that was sent. Else None, and the status of the page that shows the form (again):
    what is wrong, or why it was refused, then stands in it in words.
    """
    if request.method != "POST":
        return None, 200
    if not form.is_valid():
        return None, 422
    try:
        return do(), 200
    except NotFound:
        raise
    except Refused as refusal:
        form.add_error(None, refusal.message)
        return None, refusal.http_status


def or_404(found: Any) -> Any:
    if found is None:
        raise Http404
    return found


def uuid_or_404(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404 from error
