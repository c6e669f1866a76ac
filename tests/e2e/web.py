"""A real web server on the test's database, and who calls it: an automation, and a person with a session."""

import http.client
import json
import re
import sys
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.test import Client

from access.models import User
from tests.e2e.fleet import eventually
from tests.processes import Processes, free_port


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    def is_problem(self, status: int, code: str) -> bool:
        """Whether this is the API's way to say so."""
        ours = self.headers["content-type"] == "application/problem+json"
        return ours and (self.status, self.json["code"]) == (status, code)


class Web:
    """gunicorn, as `./placet up` starts it; calls have connections of their own."""

    def __init__(self, processes: Processes) -> None:
        self.port = free_port()
        self.headers: dict[str, str] = {}
        command = ("-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{self.port}", "--no-control-socket")
        processes.start("web", sys.executable, *command, "--worker-class", "gthread", "--threads", "4")
        eventually(self._answers, seconds=90, what=lambda: processes.log("web")[-2000:])

    def _answers(self) -> bool:
        try:
            return self.get("/readyz").status == 200
        except OSError:
            return False

    def sign_in(self, user: User) -> None:
        """As this person from now on."""
        client = Client()
        client.force_login(user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        self.headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"}

    def get(self, path: str, **headers: str) -> Answer:
        return self._call("GET", path, None, headers)

    def post_json(self, path: str, body: Any, **headers: str) -> Answer:
        return self._call("POST", path, json.dumps(body), headers | {"Content-Type": "application/json"})

    def post_form(self, path: str, form: dict[str, Any], page: Answer) -> Answer:
        """The form of a page that was answered before, with its proof of origin."""
        cookie = page.headers["set-cookie"].partition(";")[0]
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert found is not None
        body = urlencode(form | {"csrfmiddlewaretoken": found[1]}, doseq=True)
        headers = {
            "Content-Type": "application/x-www-form-urlencoded", "Origin": settings.PLACET_BASE_URL,
            "Cookie": f"{self.headers['Cookie']}; {cookie}",
        }  # fmt: skip
        return self._call("POST", path, body, headers)

    def _call(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, self.headers | headers)
            answer = connection.getresponse()
            found = {name.lower(): text for name, text in answer.getheaders()}
            return Answer(answer.status, found, answer.read().decode())
        finally:
            connection.close()
