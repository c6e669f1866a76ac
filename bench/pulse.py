"""So many open pages that ask for the pulse, as browsers do: what they cost web server and database, and how soon each
page is told of a decision.
"""

import heapq
import http.client
import itertools
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from django.test import Client

from bench.numbers import per, percentiles
from bench.product import Product
from bench.site import Site

EVERY_S: Final = 1.2
"""As in static/placet/pulse.js."""
_CLIENTS: Final = 12
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def pulse(product: Product, *, pages: int, seconds: float) -> dict[str, Any]:
    """The processes alone for a while; then with the pages: while nothing happens, and with a decision a second."""
    site = product.site
    site.start_web()
    decisions = product.approvals(2 + int(seconds))
    one_page = _queue_page(product)
    nothing = _measured(site, seconds / 3, lambda: time.sleep(seconds / 3))
    open_pages = Pages(product, pages)
    open_pages.ask_for(5)  # each is checked once by each web process
    open_pages.take_asked()
    quiet = _measured(site, seconds, lambda: open_pages.ask_for(seconds))
    asked = open_pages.take_asked()
    told: list[float] = []

    def decide() -> None:
        for approval in decisions[: int(seconds)]:
            told.append(time.perf_counter())
            open_pages.expected[str(approval.proposal.pk)] = told[-1]
            product.approve(approval)
            time.sleep(max(0.0, told[-1] + 1 - time.perf_counter()))

    decider = threading.Thread(target=decide)
    decider.start()
    busy = _measured(site, seconds + 4, lambda: open_pages.ask_for(seconds + 4))
    decider.join()
    return {
        "pages": pages, "asked_per_second": asked / seconds, "processes_alone": nothing, "quiet": quiet, "busy": busy,
        "queue_page": one_page, "told_after": percentiles(open_pages.heard), "missed": open_pages.missed(len(told)),
        "quiet_cpu_to_queue_pages_per_second": per(
            quiet["cpu_cores"] - nothing["cpu_cores"], one_page["p50_ms"] / 1000
        ),
    }  # fmt: skip


class Pages:
    """Open pages: each a session of its own that asks every 1.2 s on a connection of its own."""

    def __init__(self, product: Product, count: int) -> None:
        self.port = product.site.web_port
        self.since = ["" for _ in range(count)]
        self.cookies = [_session(product) for _ in range(count)]
        self.connections = [
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=30) for _ in range(count)
        ]
        self.expected: dict[str, float] = {}
        self.heard: list[float] = []
        self.told: list[set[str]] = [set() for _ in range(count)]
        self.asked = itertools.count()
        for page in range(count):
            self._ask(page)

    def take_asked(self) -> int:
        asked = next(self.asked)
        self.asked = itertools.count()
        return asked

    def missed(self, decisions: int) -> int:
        """Pages that were not told of a decision, over all decisions."""
        return decisions * len(self.told) - sum(len(told & set(self.expected)) for told in self.told)

    def ask_for(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        start = time.perf_counter()
        due = [(start + EVERY_S * page / len(self.since), page) for page in range(len(self.since))]
        heapq.heapify(due)
        lock = threading.Lock()
        clients = [threading.Thread(target=self._client, args=(due, lock, end)) for _ in range(_CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def _client(self, due: list[tuple[float, int]], lock: threading.Lock, end: float) -> None:
        while True:
            with lock:
                at, page = heapq.heappop(due) if due else (end, -1)
            if page < 0:
                time.sleep(0.01)
                if time.perf_counter() >= end:
                    return
                continue
            if at >= end:
                return
            time.sleep(max(0.0, at - time.perf_counter()))
            self._ask(page)
            with lock:
                heapq.heappush(due, (max(at + EVERY_S, time.perf_counter()), page))

    def _ask(self, page: int) -> None:
        headers = {"Cookie": self.cookies[page], "Host": "localhost", "HX-Request": "true"}
        connection = self.connections[page]
        for _ in range(2):
            try:
                connection.request("GET", f"/review/pulse/?since={self.since[page]}", headers=headers)
                answer = connection.getresponse()
                body = answer.read()
                break
            except (http.client.HTTPException, ConnectionError):
                connection.close()  # it was idle for too long
        if answer.status not in (200, 204):
            raise SystemExit(f"The pulse answers {answer.status}: {body[:300]!r}")
        self.since[page] = answer.headers["X-Placet-Pulse"]
        next(self.asked)
        now = time.perf_counter()
        for proposal_id, decided in list(self.expected.items()):
            if proposal_id.encode() in body and proposal_id not in self.told[page]:
                self.told[page].add(proposal_id)
                self.heard.append(now - decided)


def _session(product: Product) -> str:
    browser = Client()
    browser.force_login(product.reviewer)
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())


def _queue_page(product: Product) -> dict[str, float]:
    """CPU and time of the page that everybody opens, to compare with."""
    person = Client(headers={"host": "localhost"})
    person.force_login(product.reviewer)
    taken = []
    for _ in range(23):
        began = time.perf_counter()
        person.get("/review/")
        taken.append(time.perf_counter() - began)
    return percentiles(taken[3:])


def _measured(site: Site, seconds: float, do: Any) -> dict[str, float]:
    """While ``do`` runs: statements a second, and CPU of web server and database in cores."""
    with _statements(site) as counted:
        before, began = _cpu(site), time.perf_counter()
        do()
        took, after = time.perf_counter() - began, _cpu(site)
    found = {name: (after[name] - before[name]) / took for name in after}
    return {
        "statements_per_second": counted[0] / took, "web_cores": found["web"], "database_cores": found["database"],
        "cpu_cores": sum(found.values()),
    }  # fmt: skip


@contextmanager
def _statements(site: Site) -> Generator[list[int]]:
    """Counted in the server's own log."""
    log = site.postgres.log
    with psycopg.connect(site.superuser_url, autocommit=True) as database:
        database.execute("ALTER SYSTEM SET log_statement = 'all'")
        database.execute("SELECT pg_reload_conf()")
        time.sleep(0.5)
        start = log.stat().st_size
        counted = [0]
        yield counted
        with log.open("rb") as lines:
            lines.seek(start)
            counted[0] = sum(b"LOG:  statement:" in line or b"LOG:  execute" in line for line in lines)
        database.execute("ALTER SYSTEM RESET log_statement")
        database.execute("SELECT pg_reload_conf()")


def _cpu(site: Site) -> dict[str, float]:
    """Seconds of CPU that the web processes and the database's have used so far, ended ones among them."""
    assert site.web is not None
    database = int((site.postgres.data / "postmaster.pid").read_text().split()[0])
    return {"web": _of_family(site.web.pid), "database": _of_family(database)}


def _of_family(pid: int) -> float:
    """A process, its children, and those that it has buried."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS + sum(_of_family(int(child)) for child in children)
