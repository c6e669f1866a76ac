"""What the history costs the product's own write path: proposing and deciding, with its events and without, in turns.

The product has no switch for it, and gets none: in this process alone, in every second round, the one function that
writes gathered events is replaced by nothing. All else is the same: validation, canonical bodies, locks, commits.
Rounds alternate, so that a machine that gets slower is slower for both; sealing is timed by itself, as it is done.
"""

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg

from approvals.actions import Submission, decide
from approvals.models import Proposal
from approvals.receipts import issue
from approvals.shown import view_of
from audit import actions
from audit.actors import Actor, Owner, Via
from audit.sealer import seal
from bench.numbers import per
from bench.product import Product
from common.clock import db_clock
from common.ids import new_id
from workflows.actions.outside import OutsideProposal, propose_from_outside
from workflows.actions.runs import Source

THREADS = 4
_AGENT = Actor("api:bench", Via.TOKEN, Owner.AUTOMATION)


def audit(product: Product, *, count: int, rounds: int) -> dict[str, Any]:
    """``count`` actions in each of ``rounds`` rounds of each kind; medians, and the share that is left with events."""
    measured: dict[str, list[dict[str, float]]] = {"with": [], "without": []}
    with ThreadPoolExecutor(THREADS) as pool:
        _round(product, pool, max(4, count // 4))  # connections, caches, plans
        for _ in range(rounds):
            measured["with"].append(_round(product, pool, count))
            with _no_events():
                measured["without"].append(_round(product, pool, count))
    found: dict[str, Any] = {kind: _medians(those) for kind, those in measured.items()}
    found["share_of_speed_with"] = {
        what: per(found["with"][f"{what}_per_second"], found["without"][f"{what}_per_second"])
        for what in ("propose", "decide")
    }
    return found | {"rounds": rounds, "actions_a_round": count, "threads": THREADS}


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}


def _round(product: Product, pool: ThreadPoolExecutor, count: int) -> dict[str, float]:
    before = _wal(product)
    began = time.perf_counter()
    proposals = list(pool.map(lambda _: _propose(product), range(count)))
    proposed = time.perf_counter()
    asked = [(proposal, _submission(product, proposal)) for proposal in proposals]
    ready = time.perf_counter()
    list(pool.map(lambda one: _decide(product, *one), asked))
    decided = time.perf_counter()
    written = _wal(product) - before
    sealed = seal(db_clock)
    return {
        "propose_per_second": count / (proposed - began), "decide_per_second": count / (decided - ready),
        "wal_bytes_an_action": written / count, "events_an_action": sealed / count,
        "seal_ms_an_action": 1000 * (time.perf_counter() - decided) / count,
    }  # fmt: skip


@contextmanager
def _no_events() -> Iterator[None]:
    """In this process, until the end of the block."""
    writes = actions._insert  # noqa: SLF001 - no switch in the product is the point
    actions._insert = lambda _rows: None  # noqa: SLF001
    try:
        yield
    finally:
        actions._insert = writes  # noqa: SLF001


def _propose(product: Product) -> Proposal:
    event = str(new_id())
    request = OutsideProposal(
        workflow="bench", source=Source("bench", event, key="1"), operation="bench.post", arguments={"thing": event},
        reason="The benchmark wants it.",
    )  # fmt: skip
    return propose_from_outside(tenant=product.tenant, request=request, by=_AGENT, clock=db_clock).proposal


def _submission(product: Product, proposal: Proposal) -> Submission:
    view, user, at = view_of(proposal), product.reviewer.pk, db_clock()
    digests = {"digest": proposal.digest, "view_digest": proposal.view_digest}
    receipts = tuple(
        issue(user_id=user, proposal_id=proposal.pk, part=part, at=at, **digests) for part in view.parts
    )
    return Submission("approve", **digests, view_receipts=receipts, acknowledged=tuple(view.to_acknowledge))


def _decide(product: Product, proposal: Proposal, submission: Submission) -> None:
    user = product.reviewer.pk
    by = Actor(f"user:{user}", Via.SESSION, Owner.PERSON, user_id=user)
    decide(
        tenant_id=product.tenant.pk, proposal_id=proposal.pk, submission=submission, by=by, clock=db_clock
    )  # fmt: skip


def _wal(product: Product) -> int:
    with psycopg.connect(product.site.superuser_url) as database:
        row = database.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    return int(row[0]) if row else 0
