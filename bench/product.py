"""What the measures do to the product, from outside over HTTP. Django is set up when this is imported."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from django.test import Client

from access.actions import create_agent, issue_token
from access.enums import Role, Scope
from approvals.models import Proposal
from approvals.receipts import issue
from approvals.shown import view_of
from audit.actors import Actor, Owner, Via
from bench.site import Site, wait_until
from common.clock import db_clock
from common.ids import new_id
from tests.factories import make_tenant, make_user
from workflows import registry

T = TypeVar("T")
CLIENTS = 16
BULK = 100
MACHINE = Actor("command_line:bench", Via.COMMAND_LINE, Owner.PERSON)
_CSRF = "b" * 32


@dataclass(frozen=True, slots=True)
class Approval:
    """A decision that is ready to be posted."""

    proposal: Proposal
    path: str
    body: str

    @property
    def key(self) -> str:
        return str(self.proposal.idempotency_key)


class Product:
    """One tenant, one reviewer, one token; each measure starts from what the last one left."""

    def __init__(self, site: Site) -> None:
        self.site = site
        registry.register_definitions(clock=db_clock)
        self.tenant = make_tenant("bench")
        self.reviewer = make_user(self.tenant, "rita", roles=[Role.REVIEWER])
        agent = create_agent(tenant=self.tenant, name="bench", by=MACHINE, clock=db_clock)
        self.token, _ = issue_token(
            agent=agent, scopes=list(Scope), life=timedelta(days=1), by=MACHINE, clock=db_clock
        )
        browser = Client()
        browser.force_login(self.reviewer)
        cookies = [f"{name}={morsel.value}" for name, morsel in browser.cookies.items()]
        self._session = {"Cookie": "; ".join([*cookies, f"placet_csrf={_CSRF}"]), "X-CSRFToken": _CSRF}
        self._bearer = {"Authorization": f"Bearer {self.token}"}
        self._local = threading.local()

    # -- proposals --------------------------------------------------------------------------------------------

    def propose(self, _: object = None) -> None:
        self.post("/api/v1/proposals", json.dumps(_proposal()), self._bearer, expected=201)

    def start_runs(self, count: int) -> None:
        """One bulk of runs, whose only stage proposes."""
        body = json.dumps([_run() for _ in range(count)])
        self.post("/api/v1/runs", body, self._bearer, expected=200)

    def approvals(self, count: int) -> list[Approval]:
        """So many pending proposals, made when there are fewer, and a decision for each."""
        self.site.start_web()
        found = Proposal.objects.filter(status="pending", operation="bench.post")
        missing = count - found.count()
        at_once(self.propose, range(missing))
        return [self._approval(proposal) for proposal in found.order_by("created_at")[:count]]

    def _approval(self, proposal: Proposal) -> Approval:
        view, at = view_of(proposal), db_clock()
        receipts = [
            issue(user_id=self.reviewer.pk, proposal_id=proposal.pk, digest=proposal.digest,
                  view_digest=proposal.view_digest, part=part, at=at)
            for part in view.parts
        ]  # fmt: skip
        body = {
            "decision": "approve", "digest": proposal.digest, "view_digest": proposal.view_digest,
            "view_receipts": receipts, "acknowledged": list(view.to_acknowledge),
        }  # fmt: skip
        return Approval(proposal, f"/api/v1/proposals/{proposal.pk}/decisions", json.dumps(body))

    def approve(self, approval: Approval) -> None:
        self.post(approval.path, approval.body, self._session, expected=200)

    # -- HTTP -------------------------------------------------------------------------------------------------

    def post(self, path: str, body: str, headers: dict[str, str], *, expected: int) -> None:
        """On this thread's own connection. Raises SystemExit for any other answer."""
        headers = headers | {"Content-Type": "application/json", "Host": "localhost"}
        try:
            status, answer = self._request(path, body, headers)
        except (http.client.RemoteDisconnected, ConnectionError):
            self._connection.close()  # it was idle for too long; what is posted here may come twice
            status, answer = self._request(path, body, headers)
        if status != expected:
            raise SystemExit(f"POST {path}: {status} {answer[:500]!r}")

    def _request(self, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    @property
    def _connection(self) -> http.client.HTTPConnection:
        if not hasattr(self._local, "http"):
            self._local.http = http.client.HTTPConnection("127.0.0.1", self.site.web_port, timeout=60)
        return self._local.http  # type: ignore[no-any-return]

    # -- what became of it ------------------------------------------------------------------------------------

    def wait_until_executed(self) -> None:
        """Until no command is ready or under way. Raises SystemExit when one did not end as confirmed."""
        with psycopg.connect(self.site.superuser_url, autocommit=True) as database:
            wait_until(lambda: not _one(database, _BUSY), "all commands have ended", every=0.01)
            others = database.execute(_NOT_CONFIRMED).fetchall()
        if others:
            raise SystemExit(f"Some commands were not confirmed: {others}\n{self.site.logs()}")

    def last_recorded(self) -> float:
        with psycopg.connect(self.site.superuser_url) as database:
            return float(_one(database, "SELECT extract(epoch FROM max(ended_at)) FROM workflows_command"))

    def analyze(self) -> None:
        """So that the planner knows what was written a moment ago; autovacuum comes once a minute."""
        with psycopg.connect(self.site.superuser_url, autocommit=True) as database:
            database.execute("ANALYZE")


_BUSY = """
    SELECT EXISTS (SELECT FROM workflows_command WHERE status IN ('ready', 'retry_wait'))
        OR EXISTS (SELECT FROM workflows_command WHERE status IN ('claimed', 'sent'))
"""
_NOT_CONFIRMED = "SELECT status, count(*) FROM workflows_command WHERE status <> 'confirmed' GROUP BY status"


def _one(database: psycopg.Connection, query: str) -> Any:
    row = database.execute(query).fetchone()
    return row[0] if row else None


def at_once(do: Callable[[Any], object], things: Sequence[T] | range, clients: int = CLIENTS) -> list[float]:
    """Do it for each, on so many threads; how many seconds each took."""

    def timed(thing: Any) -> float:
        began = time.perf_counter()
        do(thing)
        return time.perf_counter() - began

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(timed, things))


def _proposal() -> dict[str, Any]:
    event = str(new_id())
    return {
        "workflow": "bench", "source": {"system": "bench", "event_id": event}, "key": "1", "operation": "bench.post",
        "arguments": {"thing": event}, "reason": "The benchmark wants it.", "evidence": [],
    }  # fmt: skip


def _run() -> dict[str, Any]:
    event = str(new_id())
    return {
        "workflow": "bench-runs",
        "source": {"system": "bench", "event_id": event},
        "input": {"thing": event},
    }
