"""Sign in, sign out."""

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from access.actions import note_failed_sign_in, note_sign_in, note_sign_out
from access.auth import person_actor, request_id_of
from access.forms import THROTTLED, SignInForm
from access.policies import only_membership
from access.throttle import WINDOW
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.web import http_methods


@method_decorator([http_methods(write=("POST",)), never_cache], name="dispatch")
class SignIn(LoginView):
    """Opens a session. Each try is an event; the name that was typed is in none of them."""

    template_name = "access/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_valid(self, form: Any) -> HttpResponse:
        membership = only_membership(form.get_user())
        if membership is None:  # lost in this very moment
            return self.form_invalid(form)
        actor = person_actor(membership, request_id=request_id_of(self.request))
        note_sign_in(membership=membership, by=actor, clock=db_clock)
        return super().form_valid(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        if form.has_error("__all__", code=THROTTLED):
            response.status_code = 429
            response["Retry-After"] = str(int(WINDOW.total_seconds()))
        elif form.was_tried:
            stranger = Actor(
                performed_by="anonymous", via=Via.SESSION, owner=Owner.PERSON,
                request_id=request_id_of(self.request),
            )  # fmt: skip
            note_failed_sign_in(
                username=form.cleaned_data["username"], subject=form.subject, by=stranger, clock=db_clock
            )
        return response


@method_decorator([http_methods(read=(), write=("POST",)), never_cache], name="dispatch")
class SignOut(LogoutView):
    """Ends the session."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        membership = getattr(request, "membership", None)
        if membership is not None:
            actor = person_actor(membership, request_id=request_id_of(request))
            note_sign_out(membership=membership, by=actor, clock=db_clock)
        return super().post(request, *args, **kwargs)
