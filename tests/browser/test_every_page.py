"""Nothing that axe objects to, on any page of the site, for any role, in light and in dark.

The addresses come from the URL map and the ids from what is planted, so a new page is looked at by itself. Where two
roles are shown the same, it is looked at once.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page

from access.enums import Role
from common.models import Tenant
from tests import factories
from tests.browser.desks import sign_in
from tests.browser.shots import objections, sideways
from tests.tenants.planted import id_for, plant
from tests.tenants.test_every_address import ADDRESSES, OTHERWISE, WORDS

pytestmark = [pytest.mark.django_db, pytest.mark.browser, pytest.mark.ignore_template_errors]
# What is no page of a person's own accord: ways out, machines' addresses, and other people's servers.
NOT_PAGES = ("/api/", "/sign-out/", "/metrics", "/healthz", "/readyz", "/openid", "/oidc")
LEAST = {"admin": 20}
"""So many pages are only this role's, whoever was there before."""
seen: set[bytes] = set()


def pages(client: Client, tenant: Tenant) -> Iterator[str]:
    """The addresses that answer this person with a whole page that nobody was shown before."""
    for address in ADDRESSES:
        if address.text.startswith(NOT_PAGES):
            continue
        ids = {
            name: id_for(OTHERWISE.get(name, name), tenant)
            for name in address.parameters
            if name not in WORDS
        }
        path = address.of(WORDS | ids)
        answer = client.get(path)
        body = answer.content if not answer.streaming else b""
        if answer.status_code in (200, 403) and b"<html" in body and _is_new(path, body):
            yield path


def _is_new(path: str, body: bytes) -> bool:
    """By what stands in main: the bar differs between roles on every page, and is looked at on the first."""
    main = re.search(rb"<main.*</main>", body, re.DOTALL)
    text = re.sub(
        rb'csrfmiddlewaretoken" value="[^"]*"|\d\d:\d\d(:\d\d)?|[0-9a-f]{32}', b"*", main[0] if main else body
    )
    name = hashlib.sha256(text).digest()
    new = name not in seen or path == "/review/"
    seen.add(name)
    return new


def found_on(page: Page) -> list[str]:
    """In light everything, in dark the contrast; and nothing to scroll sideways on a narrow phone."""
    found = objections(page)
    page.set_viewport_size({"width": 320, "height": 700})
    if wide := sideways(page):
        found.append(f"{wide} px sideways at 320")
    page.set_viewport_size({"width": 1280, "height": 900})
    return found


@pytest.mark.parametrize("who", [*Role.values, "anonymous"])
def test_no_page_has_anything_to_object_to(page: Page, live_server: Any, who: str) -> None:
    tenant, client = plant("ours"), Client()
    if who != "anonymous":
        user = factories.make_user(tenant, f"our-{who}", roles=[Role(who)], email=f"{who}@example.com")
        client.force_login(user)
        sign_in(page, live_server.url, user)
    objected = {}
    looked_at = 0
    for path in pages(client, tenant):
        page.goto(f"{live_server.url}{path}")
        looked_at += 1
        if found := found_on(page):
            objected[path] = found
    assert objected == {}
    assert looked_at >= LEAST.get(who, 1)
