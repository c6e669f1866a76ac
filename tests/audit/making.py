"""Bundles of an invented history, always the same to the byte: fixed ids, clock and keys.

What they hold is spelled, linked, hashed and signed here and in `audit.tree` and `audit.checkpoints`; the verifier has
code of its own for all of it, so that the two check each other.
"""

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from audit import checkpoints
from audit.tree import Tree, root

TENANT = UUID("0192f3a0-0000-7000-8000-000000000001")
BEGIN = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
SIGNER = Ed25519PrivateKey.from_private_bytes(b"placet fixture: the signer's key")
RECEIPTS = Ed25519PrivateKey.from_private_bytes(b"placet fixture: key of receipts ")
VKEY = checkpoints.public_key(SIGNER).vkey
RECEIPT_KEY = base64.b64encode(RECEIPTS.public_key().public_bytes_raw()).decode()
ADA, BEN, EVE = (f"user:{uuid5(TENANT, name)}" for name in ("ada", "ben", "eve"))
EMPTY = {
    "run": None, "from": "", "to": "", "performed_by": "worker:w-1", "on_behalf_of": "", "via": "worker",
    "owner": "worker", "reason": "", "request_id": "", "digest": "", "body": {},
}  # fmt: skip


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def instant(at: datetime, digits: int = 6) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S") + (f".{at.microsecond:06d}Z" if digits else "Z")


@dataclass
class Made:
    """A history with its rows and contents; nothing is linked before it is asked for."""

    events: list[dict[str, Any]] = field(default_factory=list)
    unsealed: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    contracts: list[dict[str, Any]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    numbers: int = 0

    def new_id(self, word: str) -> str:
        self.numbers += 1
        return str(uuid5(TENANT, f"{word} {self.numbers}"))

    def tell(self, kind: str, subject: str, **more: Any) -> dict[str, Any]:
        """One more event, a second after the one before it."""
        ident = self.new_id(kind)
        at = instant(BEGIN + timedelta(seconds=len(self.events)))
        event = {"v": 1, "id": ident, "tenant": str(TENANT), "kind": kind, "subject": subject, "at": at}
        self.events.append(EMPTY | more | event)
        return self.events[-1]

    def row(self, table: str, ident: str, **more: Any) -> dict[str, Any]:
        self.rows.append({"table": table, "id": ident, **more})
        return self.rows[-1]


@dataclass
class Life:
    """The ids of one run with one action."""

    run: str
    step: str
    proposal: str
    decisions: list[str]
    command: str
    digest: str
    view: str


def person(name: str) -> dict[str, str]:
    return {"performed_by": name, "via": "session", "owner": "person"}


def contract_of(run: str, order: str) -> dict[str, Any]:
    key = hashlib.sha256(run.encode()).hexdigest()[:52].upper()
    return {
        "v": 1, "tenant": "harbour", "workflow": "refunds", "workflow_version": 1, "run_id": run, "step": "refund",
        "operation": "refunds.issue", "operation_version": 2, "actor": "api:intake",
        "arguments": {"order": order, "amount": "12.50", "currency": "EUR", "message": "Für Sie, mit Dank 🙂"},
        "target": f"order:{order}", "policy_version": 7, "nonce": run.replace("-", ""),
        "evidence": [], "pins": {}, "idempotency_key": key, "decide_by": "2026-12-24T12:00:00Z",
        "execute_within_s": 600,
    }  # fmt: skip


def propose(made: Made, order: str, needed: int = 1, **more: str) -> Life:
    """A run up to its proposal. ``more``: further members of its contract."""
    run, step, proposal = made.new_id("run"), made.new_id("step"), made.new_id("proposal")
    contract = rfc8785.dumps(contract_of(run, order) | more)
    digest = hashlib.sha256(b"placet.contract.v1\n" + contract).hexdigest()
    view = rfc8785.dumps({"contract_digest": digest, "headline": f"Refund of order {order}"})
    shown = hashlib.sha256(b"placet.view.v1\n" + view).hexdigest()
    made.contracts.append({"digest": digest, "contract": b64(contract), "erased": False})
    made.views.append({"digest": shown, "view": b64(view), "erased": False})
    made.tell("run.queued", f"run:{run}", run=run, to="queued")
    made.tell("step.running", f"step:{step}", run=run, **{"from": "pending", "to": "running"})
    made.tell("step.waiting", f"step:{step}", run=run, **{"from": "running", "to": "waiting"})
    made.tell(
        "proposal.made", f"proposal:{proposal}", run=run, to="pending", digest=digest,
        body={"view_digest": shown, "needed": needed, "mode": "live", "score": 0.25, "ünï": "ö"}
        | ({"version": 1} | more if more else {}),
    )  # fmt: skip
    bound = ("step", "operation", "operation_version", "target", "idempotency_key", "decide_by")
    made.row("run", run, status="queued")
    made.row("step", step, run_id=run, status="waiting")
    made.row(
        "proposal", proposal, status="pending", run_id=run, digest=digest, view_digest=shown, needed=needed,
        mode="live", **{name: contract_of(run, order)[name] for name in bound},
    )  # fmt: skip
    return Life(run, step, proposal, [], "", digest, shown)


def vote(made: Made, life: Life, by: str = ADA, kind: str = "approve") -> str:
    ident = made.new_id("decision")
    made.tell(
        "proposal.vote", f"proposal:{life.proposal}", run=life.run, digest=life.digest, **person(by),
        body={"decision_id": ident, "kind": kind, "view_digest": life.view, "replaces": None},
    )  # fmt: skip
    made.row(
        "decision", ident, proposal_id=life.proposal, kind=kind, performed_by=by, via="session",
        digest=life.digest, view_digest=life.view, standing=True, own=False, posture="",
    )  # fmt: skip
    life.decisions.append(ident)
    return ident


def order(made: Made, life: Life, by: str = ADA) -> None:
    """It is approved, and the command given."""
    life.command = made.new_id("command")
    key = contract_of(life.run, "")["idempotency_key"]
    moved(made, life, "proposal", life.proposal, "approved", digest=life.digest, **person(by))
    made.tell(
        "command.ready", f"command:{life.command}", run=life.run, to="ready", digest=life.digest,
        body={"proposal_id": life.proposal, "operation": "refunds.issue", "key": key},
    )  # fmt: skip
    made.row("command", life.command, proposal_id=life.proposal, status="ready", idempotency_key=key)


def execute(made: Made, life: Life) -> None:
    sent_at = instant(BEGIN + timedelta(seconds=len(made.events)))
    moved(made, life, "command", life.command, "claimed")
    moved(made, life, "command", life.command, "sent", digest=life.digest)
    moved(made, life, "command", life.command, "confirmed", digest=life.digest)
    moved(made, life, "proposal", life.proposal, "consumed", digest=life.digest)
    moved(made, life, "step", life.step, "completed")
    moved(made, life, "run", life.run, "completed")
    ident = made.new_id("attempt")
    made.row("attempt", ident, command_id=life.command, number=1, status="answered", sent_at=sent_at)


def moved(made: Made, life: Life, thing: str, ident: str, to: str, **more: Any) -> None:
    row = next(row for row in made.rows if (row["table"], row["id"]) == (thing, ident))
    states = {"from": row["status"], "to": to}
    made.tell(f"{thing}.{to}", f"{thing}:{ident}", run=life.run, **states, **more)
    row["status"] = to


def whole_life(made: Made, number: str, voters: Sequence[str] = (ADA,)) -> Life:
    life = propose(made, number, needed=len(voters))
    for voter in voters:
        vote(made, life, voter)
    order(made, life, voters[-1])
    execute(made, life)
    return life


# --- linking and signing ---------------------------------------------------------------------------------------------


def linked(events: Sequence[dict[str, Any]]) -> list[bytes]:
    """The lines of `events.jsonl`: numbered and chained in this order."""
    lines, previous = [], "0" * 64
    for seq, event in enumerate(events, start=1):
        line = rfc8785.dumps(event | {"seq": seq, "previous": previous})
        previous = hash_of(line)
        lines.append(line)
    return lines


def hash_of(line: bytes) -> str:
    return hashlib.sha256(b"placet.event.v1\n" + line).hexdigest()


def entries(lines: Sequence[bytes]) -> list[bytes]:
    return [bytes.fromhex(hash_of(line)) for line in lines]


def checkpoint(
    lines: Sequence[bytes], size: int, key: Ed25519PrivateKey = SIGNER, more: tuple[str, ...] = ()
) -> str:
    """The signer's word on the first ``size`` of these, a minute after the last of them."""
    at = BEGIN + timedelta(seconds=size + 60)
    those = entries(lines[:size])
    return checkpoints.sign(checkpoints.Checkpoint(TENANT, size, root(those), at, those[-1].hex(), more), key)


def proofs(lines: Sequence[bytes], places: Sequence[int], size: int) -> list[dict[str, Any]]:
    tree = Tree(entries(lines[:size]))
    return [
        {"seq": seq, "size": size, "path": [b64(step) for step in tree.inclusion_proof(seq - 1)]}
        for seq in places if seq <= size
    ]  # fmt: skip


def receipt(event: dict[str, Any], run: str, seq: int | None = None, hash_: str = "") -> dict[str, Any]:
    """What the server would have given for an event at that time."""
    content = hashlib.sha256(b"placet.event-content.v1\n" + rfc8785.dumps(event)).hexdigest()
    document = {
        "v": 1, "tenant_id": str(TENANT), "run_id": run, "event_id": event["id"], "content_hash": content,
        "issued_at": event["at"], "seq": seq, "hash": hash_,
    }  # fmt: skip
    raw = RECEIPTS.public_key().public_bytes_raw()
    value = b64(RECEIPTS.sign(b"placet.history-receipt.v1\n" + rfc8785.dumps(document)))
    key_id = hashlib.sha256(raw).hexdigest()[:16]
    return document | {"signature": {"alg": "Ed25519", "key_id": key_id, "value": value}}


def members(made: Made, lines: Sequence[bytes] | None = None, **more: Any) -> dict[str, bytes]:
    """The files of a bundle. ``more``: members of the manifest, and ``proofs``, that are other than usual."""
    lines = linked(made.events) if lines is None else list(lines)
    proof = more.pop("proofs", None)
    last = json.loads(lines[-1])["seq"] if lines else 0
    manifest = {
        "format": "placet.bundle.v1", "tenant": str(TENANT), "tenant_name": "Harbour", "made_by": EVE,
        "made_at": instant(BEGIN + timedelta(days=1), 0), "scope": {"kind": "tenant"}, "first_seq": 1,
        "last_seq": last, "counts": {"events": len(lines)},
    }  # fmt: skip
    files = {
        "manifest.json": rfc8785.dumps(manifest | more), "events.jsonl": b"".join(line + b"\n" for line in lines),
        "contracts.jsonl": jsonl(made.contracts), "views.jsonl": jsonl(made.views), "tables.jsonl": jsonl(made.rows),
        "keys.txt": VKEY.encode() + b"\n",
    }  # fmt: skip
    if made.unsealed:
        files["unsealed.jsonl"] = jsonl(made.unsealed)
    return files if proof is None else files | {"proofs.jsonl": jsonl(proof)}


def jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(rfc8785.dumps(row) + b"\n" for row in rows)


def zipped(files: dict[str, bytes]) -> bytes:
    """Always the same bytes for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 11, 2, 8, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()
