"""The faults that come from outside the product: engines that die or hang, connections cut, forged messages."""

import json
import os
import random
import signal
from collections.abc import Callable
from threading import Timer
from time import monotonic

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from launch import LaunchError
from tests.faults.fleet import Fleet
from tests.faults.people import Office
from tests.faults.site import Site

ALL = ("kill", "stop", "pg", "redis", "dup", "late", "clock")


class Breaking:
    """Does each asked-for fault again and again, at times that ``chance`` chooses. Call `step` often."""

    def __init__(
        self, site: Site, fleet: Fleet, office: Office, chance: random.Random, faults: tuple[str, ...]
    ) -> None:
        self.site, self.fleet, self.office, self.chance = site, fleet, office, chance
        self.done: dict[str, int] = {}
        self.writable_again: Timer | None = None
        self.later: list[tuple[float, Callable[[], object]]] = []
        kinds: dict[str, tuple[float, Callable[[], object]]] = {
            "kill": (4.0, fleet.kill_one), "stop": (5.0, fleet.stop_one), "pg": (6.0, self._break_postgres),
            "redis": (4.0, self._break_redis), "dup": (0.7, self._send_messages),
        }  # fmt: skip
        self.kinds = {name: kinds[name] for name in faults if name in kinds}
        self.next = {name: monotonic() + self._soon(every) for name, (every, _) in self.kinds.items()}
        fleet.directed = tuple(how for how in ("kill", "stop") if how in faults)
        fleet.wrong_clocks = "clock" in faults
        office.provider.call("PUT", "/_admin/switches", switches(office.kind, chance, bad="late" in faults))

    def _soon(self, every: float) -> float:
        return every * self.chance.uniform(0.4, 1.6)

    def step(self) -> None:
        now = monotonic()
        for at, do in [entry for entry in self.later if entry[0] <= now]:
            self.later.remove((at, do))
            do()
        for name, (every, do) in self.kinds.items():
            if self.next[name] <= now:
                do()
                self.done[name] = self.done.get(name, 0) + 1
                self.next[name] = monotonic() + self._soon(every)

    def end(self) -> None:
        """Everything is well again, outside the product."""
        self._wait_until_writable()
        for _, do in self.later:
            do()
        self.later.clear()
        if not self.site.valkey.alive():
            self.site.valkey.start()
        if not self.site.postgres.alive():
            self.site.postgres.start()
        self.office.provider.call(
            "PUT", "/_admin/switches", switches(self.office.kind, self.chance, bad=False)
        )

    # -- PostgreSQL -------------------------------------------------------------------------------------------

    def _break_postgres(self) -> None:
        ways = (self._restart_postgres, self._cut_connections, self._cut_commits, self._refuse_changes)
        self.chance.choice(ways)()

    def _restart_postgres(self) -> None:
        self._wait_until_writable()
        self.site.postgres.crash()
        for tries_left in reversed(range(5)):
            try:
                self.site.postgres.start()
            except LaunchError:
                if not tries_left:
                    raise
                self.site.pause(0.3)
            else:
                return

    def _refuse_changes(self) -> None:
        """Read only, as a standby is or a full disk in effect: nothing may be sent, and nothing is lost."""
        self._wait_until_writable()
        self._read_only("on")
        # In a thread of its own: this one may be the one that waits for changes to be taken again.
        self.writable_again = Timer(1.5, lambda: self._read_only("off"))
        self.writable_again.start()

    def _wait_until_writable(self) -> None:
        if self.writable_again is not None:
            self.writable_again.join()

    def _read_only(self, value: str) -> None:
        with psycopg.connect(self.site.superuser_url(), autocommit=True) as database:
            database.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")  # type: ignore[arg-type]
            database.execute("SELECT pg_reload_conf()")

    def _cut_connections(self) -> None:
        self._terminate("state <> 'idle'", seconds=0.3)

    def _cut_commits(self) -> None:
        """The worst place: whether it was committed is then not known to who asked for it."""
        self._terminate("state = 'active' AND query ILIKE 'commit%'", seconds=1.0)

    def _terminate(self, where: str, *, seconds: float) -> None:
        sql = (
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'placet_app' AND {where}"
        )
        until = monotonic() + seconds
        with psycopg.connect(self.site.superuser_url(), autocommit=True) as database:
            while monotonic() < until:
                database.execute(sql)  # type: ignore[arg-type]

    # -- Redis ------------------------------------------------------------------------------------------------

    def _break_redis(self) -> None:
        self.chance.choice((self._empty_redis, self._restart_redis, self._hang_redis, self._lose_redis))()

    def _client(self) -> redis.Redis:
        # No second tries: this thread has others to wake and to kill.
        never = Retry(NoBackoff(), 0)
        return redis.Redis(unix_socket_path=str(self.site.valkey.socket), socket_timeout=0.3, retry=never)

    def _empty_redis(self) -> None:
        self._try_redis(lambda client: client.flushall())

    def _restart_redis(self) -> None:
        if self.site.valkey.alive() and not self.later:
            self.site.valkey.stop()
            self.site.valkey.start()

    def _hang_redis(self) -> None:
        process = self.site.valkey.process
        if process is not None and self.site.valkey.alive() and not self.later:
            os.kill(process.pid, signal.SIGSTOP)
            self.later.append((monotonic() + 3, lambda: os.kill(process.pid, signal.SIGCONT)))

    def _lose_redis(self) -> None:
        if self.site.valkey.alive() and not self.later:
            self.site.valkey.stop()
            self.later.append((monotonic() + 3, self.site.valkey.start))

    def _try_redis(self, do: Callable[[redis.Redis], object]) -> None:
        try:
            with self._client() as client:
                do(client)
        except redis.RedisError:
            return  # it is down or hangs: that is this fault's brother at work

    # -- messages ---------------------------------------------------------------------------------------------

    def _send_messages(self) -> None:
        """Twice, late, forged, and garbage: at most a wake-up may come of them."""
        proposal = next(
            (action.proposal_id for action in reversed(self.office.actions) if action.proposal_id), None
        )
        forged = {
            "command_id": str(proposal),
            "proposal_id": str(proposal),
            "status": "approved",
            "amount": "9999.00",
        }
        for kwargs in ({}, {}, forged):
            self._try_redis(lambda client, kwargs=kwargs: client.lpush("placet", message(kwargs)))
        delayed = message({})
        self.later.append((
            monotonic() + 2, lambda: self._try_redis(lambda client: client.lpush("placet", delayed))
        ))  # fmt: skip
        if self.chance.random() < 0.3:
            garbage = self.chance.choice(
                (b"\x80\x04K\x01.", b"{", message({}, task="no.such.task"), message({}, body="!!"))
            )
            self._try_redis(lambda client: client.lpush("placet", garbage))


def message(kwargs: dict[str, str], *, task: str = "workflows.tasks.work", body: str = "") -> bytes:
    """A task message as Celery's Redis transport writes it."""
    import base64
    from uuid import uuid4

    id_ = str(uuid4())
    content = json.dumps([[], kwargs, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}])
    return json.dumps({
        "body": body or base64.b64encode(content.encode()).decode(), "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"lang": "py", "task": task, "id": id_, "root_id": id_, "parent_id": None, "retries": 0},
        "properties": {
            "correlation_id": id_, "delivery_mode": 2, "delivery_info": {"exchange": "", "routing_key": "placet"},
            "priority": 0, "body_encoding": "base64", "delivery_tag": str(uuid4()),
        },
    }).encode()  # fmt: skip


_GARBAGE = (b"\x80\x04K\x01.", b"{", message({}, task="no.such.task"), message({}, body="!!"))


def switches(kind: str, chance: random.Random, *, bad: bool) -> dict[str, object]:
    """The provider's mode, and when it misbehaves: every way it knows, each for a share of the requests."""
    from tests.faults.flows import MODES

    document: dict[str, object] = {"mode": MODES[kind], "lookup_lag_seconds": 1.0 if bad else 0.0}
    if not bad:
        return document
    ways: list[dict[str, object]] = [
        {"fault": "accept_then_hang", "seconds": 4}, {"fault": "accept_then_hang", "seconds": 4, "execute": False},
        {"fault": "apply_late", "seconds": 0.3}, {"fault": "apply_late", "seconds": 1.6},
        {"fault": "drop_connection"}, {"fault": "drop_connection", "execute": True},
        {"fault": "status", "status": 429, "retry_after": 1}, {"fault": "status", "status": 429},
        {"fault": "status", "status": 500}, {"fault": "status", "status": 500, "execute": True},
        {"fault": "status", "status": 503, "execute": True}, {"fault": "status", "status": 408},
        {"fault": "status", "status": 302, "execute": True}, {"fault": "half_body"},
        {"fault": "trickle", "seconds": 0.2}, {"fault": "flood"}, {"fault": "garbled"}, {"fault": "other_document"},
        {"fault": "delay", "seconds": 0.4},
        {"fault": "status", "status": 503, "on": "/refunds", "method": "GET"},
        {"fault": "drop_connection", "on": "/refunds", "method": "GET"},
        {"fault": "status", "status": 503, "on": "/orders", "method": "GET"},
    ]  # fmt: skip
    share = 0.03
    rules = [way | {"share": share, "seed": chance.randrange(10**6)} for way in ways]
    return document | {"rules": rules}
