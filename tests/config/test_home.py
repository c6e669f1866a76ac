"""The address that the start prints leads somewhere."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


def test_the_bare_address_leads_to_the_review_desk_and_so_to_sign_in(client: Client) -> None:
    answer = client.get("/", follow=True)
    assert answer.redirect_chain == [("/review/", 302), ("/sign-in/?next=/review/", 302)]
    assert answer.status_code == 200
