"""What a person wrote is given back with a 503, also when the database went away before Django looked at the form."""

from django.conf import settings
from django.db import InterfaceError
from django.http import HttpRequest
from django.middleware.csrf import _get_new_csrf_string
from django.test import RequestFactory

from common.unavailable import answer

WORDS = "The parcel <b>arrived</b> after all."


def posted(rf: RequestFactory, *, token: str, cookie: str) -> HttpRequest:
    request = rf.post("/review/", {"csrfmiddlewaretoken": token, "reject_reason": WORDS})
    request.COOKIES[settings.CSRF_COOKIE_NAME] = cookie
    return request


def test_words_of_a_form_of_ours_come_back(rf: RequestFactory) -> None:
    secret = _get_new_csrf_string()
    given = answer(posted(rf, token=secret, cookie=secret), InterfaceError("gone"))
    assert (given.status_code, given["Retry-After"]) == (503, "5")
    assert "The parcel &lt;b&gt;arrived&lt;/b&gt; after all." in given.content.decode()


def test_words_of_a_strangers_form_do_not(rf: RequestFactory) -> None:
    given = answer(
        posted(rf, token=_get_new_csrf_string(), cookie=_get_new_csrf_string()), InterfaceError("gone")
    )
    assert given.status_code == 503
    assert "parcel" not in given.content.decode()
