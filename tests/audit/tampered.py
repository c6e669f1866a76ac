"""Bundles that are good, and bundles with which somebody has tampered, each with what the verifier has to say.

`python -m tests.audit.tampered` writes them to `docs/bundles/`, for whoever writes a verifier of their own.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import rfc8785

from tests.audit import making
from tests.audit.making import ADA, BEN, EVE, Life, Made
from tests.audit.tampered_signed import SIGNED, Signed

FOLDER: Final = Path(__file__).parents[2] / "docs" / "bundles"
FIRST, LAST = 20, 40
"""Sizes of the two checkpoints that somebody has kept."""


@dataclass
class Case:
    """A bundle with what is kept outside of it. ``expected``: exit status, the word for what is wrong, its place."""

    files: dict[str, bytes]
    checkpoints: dict[int, str]
    expected: tuple[int, str, int | None]
    receipts: list[dict[str, Any]] = field(default_factory=list)
    passkeys: str = ""
    """What people gave to whoever checks: their keys."""


def history() -> tuple[Made, list[Life]]:
    """Three runs with an action each, of 13, 14 and 13 events."""
    made = Made()
    return made, [
        making.whole_life(made, "1001"), making.whole_life(made, "1002", (ADA, BEN)),
        making.whole_life(made, "1003", (BEN,)),
    ]  # fmt: skip


def kept(lines: Sequence[bytes], *sizes: int) -> dict[int, str]:
    return {size: making.checkpoint(lines, size) for size in sizes or (FIRST, LAST)}


CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__.replace("_", "-")] = make
    return make


def tampered(
    made: Made, expected: tuple[int, str, int | None], *, relinked: bool = True, **more: Any
) -> Case:
    """A history that is no more what was signed: with all hashes made anew, or with those of before."""
    before = making.linked(history()[0].events)
    lines = None if relinked else more.pop("lines")
    return Case(making.members(made, lines, **more), kept(before), expected)


# --- good ------------------------------------------------------------------------------------------------------------


@case
def good_tenant() -> Case:
    made, _ = history()
    return Case(making.members(made), kept(making.linked(made.events)), (0, "", None))


@case
def good_run() -> Case:
    made, lives = history()
    files = of_run(made, lives[1])
    return Case(files, kept(making.linked(made.events)), (0, "", None))


def of_run(made: Made, life: Life, size: int = LAST) -> dict[str, bytes]:
    lines = making.linked(made.events)
    places = [seq for seq, event in enumerate(made.events, 1) if event["run"] == life.run]
    ids = {life.run, life.step, life.proposal, life.command, *life.decisions}
    rows = [row for row in made.rows if row["id"] in ids or row.get("command_id") == life.command]
    contracts = [line for line in made.contracts if line["digest"] == life.digest]
    views = [line for line in made.views if line["digest"] == life.view]
    return making.members(
        Made(rows=rows, contracts=contracts, views=views), [lines[seq - 1] for seq in places],
        scope={"kind": "run", "run_id": life.run}, first_seq=places[0], proofs=making.proofs(lines, places, size),
    )  # fmt: skip


TOKEN: Final = "token:0199d3f0-0000-7000-8000-000000000001"
TOKEN_AT: Final = 25


def mixed() -> Made:
    """What was written before events named a token, and since; in between by a process that was not restarted yet."""
    made, _ = history()
    for number, event in enumerate(made.events, 1):
        if number > 18 and number != 22:
            event |= {"v": 2, "through": TOKEN if number == TOKEN_AT else ""}
    return made


@case
def good_two_versions() -> Case:
    made = mixed()
    return Case(making.members(made), kept(making.linked(made.events)), (0, "", None))


@case
def good_erased() -> Case:
    made, lives = history()
    made.tell("run.content_erased", f"run:{lives[0].run}", run=lives[0].run, reason="file 17", body={})
    made.contracts[0] |= {"contract": None, "erased": True}
    made.views[0] |= {"view": None, "erased": True}
    return Case(making.members(made), kept(making.linked(made.events), FIRST, LAST + 1), (0, "", None))


@case
def good_range() -> Case:
    made, _ = history()
    lines = making.linked(made.events)
    bare = Made()
    files = making.members(
        bare, lines[10:30], scope={"kind": "range", "from_seq": 11, "to_seq": 30}, first_seq=11,
        proofs=making.proofs(lines, [30], LAST),
    )  # fmt: skip
    gone = ("tables.jsonl", "contracts.jsonl", "views.jsonl")
    files = {name: content for name, content in files.items() if name not in gone}
    return Case(files, kept(lines), (0, "", None))


# --- the events ------------------------------------------------------------------------------------------------------


@case
def edited() -> Case:
    made, _ = history()
    lines = making.linked(made.events)
    lines[6] = rfc8785.dumps(json.loads(lines[6]) | {"performed_by": EVE})
    return tampered(made, (1, "link", 7), relinked=False, lines=lines)


@case
def edited_recomputed() -> Case:
    made, _ = history()
    made.events[27]["reason"] = "other"
    return tampered(made, (1, "root", 21))


@case
def token_changed() -> Case:
    made = mixed()
    before = making.linked(made.events)
    made.events[TOKEN_AT - 1]["through"] = TOKEN.replace("1", "2")
    return Case(making.members(made), kept(before), (1, "root", 21))


@case
def deleted() -> Case:
    made, _ = history()
    lines = making.linked(made.events)
    del lines[8]
    return tampered(made, (1, "order", 9), relinked=False, lines=lines)


@case
def deleted_recomputed() -> Case:
    made, lives = history()
    making.propose(made, "1004")  # so that as many are left as were signed
    made.events = [event for event in made.events if event["subject"] != f"step:{lives[2].step}"]
    made.rows = [row for row in made.rows if row["id"] != lives[2].step]
    return tampered(made, (1, "root", 21))


@case
def inserted() -> Case:
    made, _ = history()
    lines = making.linked(made.events)
    event = made.tell("user.signed_in", f"user:{made.new_id('user')}", **making.person(BEN))
    lines.insert(11, rfc8785.dumps(event | {"seq": 12, "previous": making.hash_of(lines[10])}))
    lines = [rfc8785.dumps(json.loads(line) | {"seq": seq}) for seq, line in enumerate(lines, 1)]
    return tampered(made, (1, "link", 12), relinked=False, lines=lines)


@case
def inserted_recomputed() -> Case:
    made, _ = history()
    event = made.tell("user.signed_in", f"user:{made.new_id('user')}", **making.person(BEN))
    made.events.insert(22, made.events.pop())
    assert made.events[22] is event
    return tampered(made, (1, "root", 21))


@case
def reordered() -> Case:
    made, _ = history()
    lines = making.linked(made.events)
    lines[4], lines[5] = lines[5], lines[4]
    return tampered(made, (1, "order", 5), relinked=False, lines=lines)


@case
def reordered_recomputed() -> Case:
    made, _ = history()
    made.events[17], made.events[18] = made.events[18], made.events[17]  # the two decisions of the second run
    return tampered(made, (1, "root", 1))


@case
def rebuilt() -> Case:
    made = Made()
    for number in ("2001", "2002", "2003", "2004"):
        making.whole_life(made, number)
    return tampered(made, (1, "root", 1))


@case
def restored() -> Case:
    """An older state, brought back from a backup with all its rows, that has gone on since."""
    made = Made()
    making.whole_life(made, "1001")
    making.whole_life(made, "1002", (ADA, BEN))
    making.propose(made, "1009")
    return tampered(made, (1, "cut", 32))


# --- contents and rows -----------------------------------------------------------------------------------------------


@case
def payload_changed() -> Case:
    made, lives = history()
    changed = making.contract_of(lives[1].run, "1002")
    changed["arguments"]["amount"] = "1250.00"
    made.contracts[1]["contract"] = making.b64(rfc8785.dumps(changed))
    return tampered(made, (1, "content", None))


@case
def payload_gone() -> Case:
    """Called erased, and no event says so."""
    made, _ = history()
    made.contracts[1] |= {"contract": None, "erased": True}
    return tampered(made, (1, "content", None))


@case
def row_changed() -> Case:
    made, lives = history()
    row_of(made, "command", lives[0].command)["status"] = "refused"
    return tampered(made, (1, "row", None))


@case
def decision_changed() -> Case:
    made, lives = history()
    row_of(made, "decision", lives[0].decisions[0])["performed_by"] = BEN
    return tampered(made, (1, "row", None))


@case
def row_gone() -> Case:
    made, lives = history()
    made.rows.remove(row_of(made, "decision", lives[1].decisions[0]))
    return tampered(made, (1, "row", None))


def row_of(made: Made, table: str, ident: str) -> dict[str, Any]:
    return next(row for row in made.rows if (row["table"], row["id"]) == (table, ident))


# --- an approval that nobody gave ------------------------------------------------------------------------------------


def pending() -> tuple[Made, Life, list[bytes]]:
    """The three runs, and one whose proposal waits: what was signed before somebody forged the rest."""
    made, _ = history()
    life = making.propose(made, "1004")
    return made, life, making.linked(made.events)


@case
def forged_without_decision() -> Case:
    made, life, before = pending()
    making.order(made, life)
    making.execute(made, life)
    return Case(making.members(made), kept(before, FIRST, 44), (1, "quorum", 45))


@case
def forged_with_half_a_quorum() -> Case:
    made, _ = history()
    life = making.propose(made, "1004", needed=2)
    before = making.linked(made.events)
    making.vote(made, life, ADA)
    making.vote(made, life, ADA)
    making.order(made, life)
    return Case(making.members(made), kept(before, FIRST, 44), (1, "quorum", 47))


@case
def forged_by_token() -> Case:
    made, life, before = pending()
    making.vote(made, life)
    made.events[-1]["via"] = "token"
    making.order(made, life)
    return Case(making.members(made), kept(before, FIRST, 44), (1, "decision", 45))


@case
def forged_by_rule() -> Case:
    """A rule approves what its own verdict asked a person about."""
    made, life, before = pending()
    making.vote(made, life)
    made.events[-1] |= {"via": "rule", "performed_by": "rule:refund.limit@7"}
    making.order(made, life)
    return Case(making.members(made), kept(before, FIRST, 44), (1, "quorum", 46))


@case
def forged_command() -> Case:
    made, life, before = pending()
    life.command = made.new_id("command")
    made.tell(
        "command.ready", f"command:{life.command}", run=life.run, to="ready", digest=life.digest,
        body={"proposal_id": life.proposal, "operation": "refunds.issue", "key": ""},
    )  # fmt: skip
    return Case(making.members(made), kept(before, FIRST, 44), (1, "command", 45))


@case
def forged_event_without_row() -> Case:
    made, life, before = pending()
    making.vote(made, life, BEN)
    del made.rows[-1]
    making.order(made, life)
    making.execute(made, life)
    return Case(making.members(made), kept(before, FIRST, 44), (1, "row", None))


@case
def forged_on_ones_own() -> Case:
    made, life, before = pending()
    row = row_of(made, "decision", making.vote(made, life, EVE))
    row["own"] = True
    making.order(made, life)
    return Case(making.members(made), kept(before, FIRST, 44), (1, "decision", None))


@case
def forged_whole_after_the_last_checkpoint() -> Case:
    """With everything that belongs to it: only that nobody has signed it yet can be said."""
    made, life, before = pending()
    making.vote(made, life, BEN)
    making.order(made, life, BEN)
    making.execute(made, life)
    return Case(making.members(made), kept(before, FIRST, 44), (2, "45 to 53", None))


@case
def forged_whole_before_the_last_checkpoint() -> Case:
    made, life, _ = pending()
    made.tell("user.signed_in", f"user:{made.new_id('user')}", **making.person(BEN))
    before = making.linked(made.events)
    last = made.events.pop()
    making.vote(made, life, BEN)
    making.order(made, life, BEN)
    made.events.append(last)
    return Case(making.members(made), kept(before, FIRST, 45), (1, "root", 21))


# --- the end cut off -------------------------------------------------------------------------------------------------


@case
def cut_before_the_last_checkpoint() -> Case:
    made, _ = history()
    before = making.linked(made.events)
    shorter = Made()
    making.whole_life(shorter, "1001")
    making.whole_life(shorter, "1002", (ADA, BEN))
    return Case(making.members(shorter), kept(before), (1, "cut", 28))


@case
def cut_after_the_last_checkpoint() -> Case:
    """Three events are gone, with their rows. Who had a receipt of one of them can show it."""
    made, life, _ = pending()
    receipt = making.receipt(made.events[-1], life.run)
    shorter, _ = history()
    before = making.linked(shorter.events)
    return Case(making.members(shorter), kept(before), (1, "receipt", None), [receipt])


@case
def cut_out_of_the_bundle() -> Case:
    made, _ = history()
    lines = making.linked(made.events)
    files = making.members(made) | {"events.jsonl": b"".join(line + b"\n" for line in lines[:-1])}
    return Case(files, kept(lines, FIRST), (1, "end", 40))


# --- evidence that is not there --------------------------------------------------------------------------------------


@case
def without_checkpoints() -> Case:
    made, _ = history()
    return Case(making.members(made), {}, (2, "no checkpoint of this tenant from outside", None))


@case
def tail_unsigned() -> Case:
    made, _ = history()
    return Case(making.members(made), kept(making.linked(made.events), FIRST), (2, "21 to 40", None))


@case
def contents_left_out() -> Case:
    made, _ = history()
    for line in made.contracts:
        line["contract"] = None
    return Case(making.members(made), kept(making.linked(made.events)), (2, "left out", None))


def _signed(make: Callable[[], Signed]) -> Callable[[], Case]:
    def made() -> Case:
        files, outside, expected, given = make()
        return Case(files, outside, expected, passkeys=given)

    return made


CASES |= {name: _signed(make) for name, make in SIGNED.items()}


def write(folder: Path = FOLDER) -> None:
    """Every case as a folder of its own: the bundle, the checkpoints and receipts kept outside, and what to find."""
    folder.mkdir(exist_ok=True)
    (folder / "signer.pub").write_text(f"{making.VKEY}\n{making.RECEIPT_KEY}\n")
    found = {}
    for name, make in CASES.items():
        made = make()
        place = folder / name
        (place / "checkpoints").mkdir(parents=True, exist_ok=True)
        (place / "bundle.zip").write_bytes(making.zipped(made.files))
        for size, note in made.checkpoints.items():
            (place / "checkpoints" / f"{making.TENANT}-{size:012}.checkpoint").write_text(note)
        for number, receipt in enumerate(made.receipts, 1):
            (place / f"receipt-{number}.json").write_bytes(rfc8785.dumps(receipt))
        if made.passkeys:
            (place / "passkeys.txt").write_text(made.passkeys)
        code, what, seq = made.expected
        found[name] = {"exit": code, ("missing" if code == 2 else "what"): what, "seq": seq}
    (folder / "expected.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    write()
