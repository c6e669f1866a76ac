"""The processes and the broker between them."""

from collections.abc import Iterator
from typing import Any, Final

from celery import current_app
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from config import observed
from config.doctor.findings import Finding, ago, ok, problem, warning
from workflows import registry

GOOD_POLICY: Final = "noeviction"


def broker() -> Iterator[Finding]:
    """Its messages are hints: without them work waits for the sweep's next look, and is not lost."""
    try:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=2)
            info: dict[str, Any] = connection.channel().client.info()
    except (OSError, OperationalError, RedisError) as error:
        yield warning(
            f"The broker does not answer ({type(error).__name__}).",
            "Start Redis or Valkey, or correct REDIS_URL. Until then the sweep alone executes, a little later.",
        )
        return
    policy = info.get("maxmemory_policy", "")
    name = "Valkey" if info.get("server_name") == "valkey" else "Redis"
    if policy != GOOD_POLICY:
        yield warning(
            f"{name} throws messages away when its memory is full (maxmemory-policy {policy}).",
            f"Set maxmemory-policy to {GOOD_POLICY}, and give it a database of its own.",
        )
    else:
        yield ok(f"{name} answers and throws nothing away.")


def _alive(kind: str) -> tuple[list[observed.Sign], str]:
    """Those that live, and in words when one was last seen."""
    of_kind = [sign for sign in observed.signs() if sign.kind == kind]
    when = f"the last sign was {ago(of_kind[0].age)} ago" if of_kind else "none was ever seen"
    return [sign for sign in of_kind if sign.alive], when


def sweep() -> Iterator[Finding]:
    alive, when = _alive("sweep")
    if alive:
        yield ok(f"{len(alive)} sweep(s) at work: {_names(alive)}.")
    else:
        yield problem(
            f"No sweep is at work: {when}. Nothing that lost its worker is recovered, nothing expires.",
            "Start manage.py sweep, and let something start it again (./placet up, Compose and systemd do).",
        )


def workers() -> Iterator[Finding]:
    alive, when = _alive("worker")
    if alive:
        yield ok(f"{len(alive)} worker process(es) at work: {_names(alive)}.")
    else:
        yield warning(
            f"No worker has ended a task: {when}. The sweep alone executes.",
            "Start celery -A config worker; see that the broker answers and that beat runs, which wakes workers.",
        )


def beat() -> Iterator[Finding]:
    alive, when = _alive("beat")
    if alive:
        yield ok("Beat wakes the workers.")
    else:
        yield warning(
            f"Beat wakes nobody: {when}. The daily check of the history does not run.",
            "Start celery -A config beat, one of it.",
        )


def sealer() -> Iterator[Finding]:
    count, age = observed.unsealed()
    if age > observed.STALE_S:
        yield problem(
            f"{count} events have no seal; the oldest has waited for {ago(age)}.",
            "See that the sweep runs. If it does, a transaction has been open for as long: look for it in"
            " pg_stat_activity (xact_start) in all databases of the server, and end it.",
        )
    else:
        yield ok("Every event is sealed within moments.")


def operations() -> Iterator[Finding]:
    """Each version of an operation that something waits for, against what running processes can execute."""
    alive = [sign for sign in observed.signs() if sign.alive and sign.kind in ("worker", "sweep")]
    known = {name for sign in alive for name in sign.knows}
    missing = [
        (f"{operation}@{number}", count)
        for operation, number, count in observed.waiting_operations()
        if f"{operation}@{number}" not in known
    ]
    if not missing:
        installed = ", ".join(registry.known_names())
        yield ok(f"Whatever waits can be executed by a running process. Installed here: {installed}.")
    elif not alive:
        yield problem(
            f"{sum(count for _, count in missing)} actions wait, and no process runs that could execute them.",
            "Start a sweep and workers.",
        )
    else:
        words = ", ".join(f"{name} ({count} actions)" for name, count in missing)
        yield problem(
            f"No running process can execute {words}.",
            "Start processes of the release that has it; what waits is void when its time to execute is over.",
        )


def content_keys() -> Iterator[Finding]:
    """Each key that contents lie under, against what each process was given: who lacks one leaves that work alone."""
    signs = observed.signs()
    lacking = observed.lack_keys(signs, observed.wrapped_with())
    if not lacking:
        yield ok("Every running process has every key that contents lie under.")
        return
    words = "; ".join(
        f"{'this one' if name == 'here' else name}: {', '.join(keys)}" for name, keys in lacking
    )
    yield problem(
        f"Contents lie under keys that a process was not given ({words}). It cannot read or do what lies under them.",
        "Put these keys behind the first one in PLACET_CONTENT_KEYS (or its file) of every process, and restart it."
        " Where they are derived from an earlier secret key, put that into PLACET_SECRET_KEY_FALLBACKS."
        " If a key is lost, it is in the backup of your keys.",
    )


def _names(signs: list[observed.Sign]) -> str:
    return ", ".join(sign.name for sign in signs[:5]) + ("…" if len(signs) > 5 else "")


CHECKS: Final = (sweep, workers, beat, sealer, operations, content_keys)
