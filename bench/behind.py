"""What the bare loop does behind a web server and a broker (`bench.plain`), measured as the product is."""

import http.client
import os
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench.floor import Bare
from bench.numbers import Numbers, percentiles
from bench.site import WEB_PROCESSES, Site, free_port, wait_until
from launch.process import stop
from launch.up import QUIET


class Behind:
    """A web server with as many processes as the product's, and one Celery worker, each time anew."""

    def __init__(self, site: Site, bare: Bare) -> None:
        self.site, self.bare, self.port = site, bare, free_port()
        self._local = threading.local()

    def latency(self, rows: int) -> Numbers:
        """From the POST of the approval to the arrival at the provider, one at a time."""
        ids = self.bare.fill(rows + 5)
        with self._running(1):
            times = [self._one(row) for row in ids]
        return percentiles(times[5:])

    def pipeline(self, *, processes: int, rows: int, approvers: int) -> float:
        """All approved over HTTP on so many connections while the processes run; rows per second to the last record."""
        ids = self.bare.fill(rows)
        with self._running(processes), ThreadPoolExecutor(approvers) as pool:
            began = time.time()
            list(pool.map(self._approve, ids))
            wait_until(lambda: self.bare.recorded_rows() == rows, "the bare rows are recorded", every=0.01)
        return self.bare.recorded(since=began)

    def _one(self, row: uuid.UUID) -> float:
        began = time.time()
        self._approve(row)
        arrived = self.site.arrival(str(row))
        time.sleep(0.005)  # the process is to have recorded it, and to be waiting again
        return arrived - began

    def _approve(self, row: uuid.UUID) -> None:
        if not hasattr(self._local, "http"):
            self._local.http = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self._local.http.request("POST", f"/approve/{row}", b"", {"Host": "localhost"})
        answer = self._local.http.getresponse()
        answer.read()
        if answer.status != 204:
            raise SystemExit(f"POST /approve: {answer.status}\n{self.site.logs()}")

    @contextmanager
    def _running(self, processes: int) -> Iterator[None]:
        os.environ |= {"BENCH_PLAIN_URL": self.bare.address, "BENCH_PLAIN_SINK": str(self.site.sink_port)}
        web = self.site.start(
            "-m", "gunicorn", "bench.plain:application", "--bind", f"127.0.0.1:{self.port}", "--worker-class",
            "gthread", "--workers", str(WEB_PROCESSES), "--threads", "8", "--no-control-socket",
        )  # fmt: skip
        worker = self.site.start(
            "-m", "celery", "-A", "bench.plain", "worker", "-c", str(processes), *QUIET, "-l", "WARNING"
        )
        try:
            wait_until(self._web_answers, "the bare web server answers")
            wait_until(self.site.waits_for_messages, "the bare worker waits for messages")
            yield
        finally:
            self._local = threading.local()
            stop(worker, 15, grace=10)
            stop(web, 15, grace=5)

    def _web_answers(self) -> bool:
        probe = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            probe.request("GET", "/", headers={"Host": "localhost"})
            probe.getresponse().read()
        except OSError:
            return False
        finally:
            probe.close()
        return True
