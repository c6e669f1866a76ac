"""What is measured. Django is set up when this is imported."""

import http.client
import json
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
from django.db import connection
from django.test import Client

from access.actions import create_agent, issue_token
from access.enums import Role, Scope
from approvals.actions import Submission, decide
from approvals.models import Proposal
from approvals.receipts import issue
from approvals.shown import view_of
from audit.actors import Actor, Owner, Via
from bench.site import Site
from common.clock import db_clock
from common.ids import new_id
from tests.factories import make_tenant, make_user
from workflows import registry
from workflows.doorbell import ring
from workflows.models import Command

MACHINE = Actor("command_line:bench", Via.COMMAND_LINE, Owner.PERSON)


def commit_rate(url: str, *, connections: int = 4, seconds: float = 4) -> float:
    """Transactions per second, each one durable INSERT and UPDATE of a row: the most that this database can do."""
    with psycopg.connect(url, autocommit=True) as first:
        first.execute("CREATE TABLE IF NOT EXISTS bench_floor (id uuid PRIMARY KEY, n int)")
    until = time.monotonic() + seconds

    def commits(_: int) -> int:
        done = 0
        with psycopg.connect(url, autocommit=True) as mine:
            while time.monotonic() < until:
                row = new_id()
                with mine.transaction():
                    mine.execute("INSERT INTO bench_floor VALUES (%s, 0)", [row])
                    mine.execute("UPDATE bench_floor SET n = 1 WHERE id = %s", [row])
                done += 1
        return done

    with ThreadPoolExecutor(connections) as pool:
        return sum(pool.map(commits, range(connections))) / seconds


class Bench:
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

    # -- propose ----------------------------------------------------------------------------------------------

    def propose(self, count: int, clients: int = 16) -> dict[str, float]:
        """Proposals by POST, each with its run, evidence of nothing, view document and audit events."""
        local = threading.local()

        def post(_: int) -> float:
            if not hasattr(local, "http"):
                local.http = http.client.HTTPConnection("127.0.0.1", self.site.web_port, timeout=30)
            began = time.perf_counter()
            local.http.request("POST", "/api/v1/proposals", json.dumps(_proposal()), self._headers())
            answer = local.http.getresponse()
            body = answer.read()
            if answer.status != 201:
                raise SystemExit(f"POST /proposals: {answer.status} {body[:300]!r}")
            return time.perf_counter() - began

        with ThreadPoolExecutor(clients) as pool:
            began = time.perf_counter()
            times = list(pool.map(post, range(count)))
            return {"per_second": count / (time.perf_counter() - began), **_percentiles(times)}

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Host": "localhost",
        }

    # -- approve, execute -------------------------------------------------------------------------------------

    def pending(self) -> list[Proposal]:
        return list(Proposal.objects.filter(status="pending").order_by("created_at"))

    def approve(self, proposal: Proposal) -> None:
        view = view_of(proposal)
        receipts = tuple(
            issue(user_id=self.reviewer.pk, proposal_id=proposal.pk, digest=proposal.digest,
                  view_digest=proposal.view_digest, part=part, at=db_clock())
            for part in view.parts
        )  # fmt: skip
        yes = Submission(
            "approve", proposal.digest, proposal.view_digest, receipts, tuple(view.to_acknowledge)
        )
        by = Actor(f"user:{self.reviewer.pk}", Via.SESSION, Owner.PERSON, user_id=self.reviewer.pk)
        decide(tenant_id=self.tenant.pk, proposal_id=proposal.pk, submission=yes, by=by, clock=db_clock)

    def latency(self, proposals: list[Proposal]) -> dict[str, float]:
        """From the call of *decide* to the first byte at the provider, one at a time, through broker and worker."""
        times = []
        for proposal in proposals:
            began = time.time()
            self.approve(proposal)
            self.wait_until_confirmed()
            times.append(self.arrivals()[proposal.idempotency_key][0] - began)
        return _percentiles(times)

    def pipeline(self, proposals: list[Proposal]) -> float:
        """Approve all while the workers run, until the last one is recorded; per second."""
        began = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._approve_in_thread, proposals))
        self.wait_until_confirmed()
        return len(proposals) / (time.perf_counter() - began)

    def _approve_in_thread(self, proposal: Proposal) -> None:
        self.approve(proposal)

    def drain(self, proposals: list[Proposal], workers: int = 2) -> float:
        """All approved beforehand, then the workers start: first call to last record; per second."""
        known = set(self.arrivals())
        for _ in range(workers):
            self.site.start_worker()
        while set(self.arrivals()) <= known:
            ring()
            time.sleep(0.05)
        self.wait_until_confirmed(also=ring)
        new = [times[0] for key, times in self.arrivals().items() if key not in known]
        last = Command.objects.order_by("-ended_at").values_list("ended_at", flat=True)[0]
        return len(proposals) / (last.timestamp() - min(new))

    def wait_until_confirmed(self, also: Callable[[], object] = bool) -> None:
        while Command.objects.exclude(status="confirmed").exists():
            also()
            time.sleep(0.01)

    def arrivals(self) -> dict[str, list[float]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.site.sink_port}/arrivals") as answer:
            return json.load(answer)  # type: ignore[no-any-return]

    # -- lists ------------------------------------------------------------------------------------------------

    def lists(self, waiting: int) -> dict[str, dict[str, float]]:
        """A page of 100 of the API and the review queue, with that many proposals waiting."""
        self._seed(waiting)
        client = Client(headers={"host": "localhost"})
        client.force_login(self.reviewer)
        api = Client(headers={"host": "localhost", "authorization": f"Bearer {self.token}"})
        return {
            "api_page_of_100": _timed(lambda: api.get("/api/v1/proposals?status=pending&limit=100")),
            "review_queue": _timed(lambda: client.get("/review/")),
        }

    def _seed(self, waiting: int) -> None:
        """Copies of a pending row, until there are ``waiting``; each with a run of its own id."""
        columns = [
            field.column for field in Proposal._meta.concrete_fields if field.column not in ("id", "run_id")
        ]
        names = ", ".join(f'"{name}"' for name in columns)
        missing = waiting - Proposal.objects.filter(status="pending").count()
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO approvals_proposal (id, run_id, {names}) SELECT gen_random_uuid(), gen_random_uuid(),"
                f" {names} FROM (SELECT * FROM approvals_proposal WHERE status = 'pending' LIMIT 1) one,"
                " generate_series(1, %s)", [max(0, missing)],
            )  # fmt: skip
            cursor.execute("ANALYZE approvals_proposal")


def _proposal() -> dict[str, Any]:
    event = str(new_id())
    return {
        "workflow": "bench", "source": {"system": "bench", "event_id": event}, "key": "1", "operation": "bench.post",
        "arguments": {"thing": event}, "reason": "The benchmark wants it.", "evidence": [],
    }  # fmt: skip


def _timed(get: Callable[[], Any], times: int = 30) -> dict[str, float]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        answer = get()
        taken.append(time.perf_counter() - began)
        if answer.status_code != 200:
            raise SystemExit(f"{answer.status_code}: {answer.content[:300]!r}")
    return _percentiles(taken[3:])


def _percentiles(seconds: list[float]) -> dict[str, float]:
    points = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"p50_ms": points[49] * 1000, "p95_ms": points[94] * 1000, "p99_ms": points[98] * 1000}
