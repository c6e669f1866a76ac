"""Bundles of approvals that passkeys sign: good ones, and those in which somebody has invented an approval."""

from collections.abc import Callable, Sequence
from typing import Final

from tests.audit import making, signed
from tests.audit.making import ADA, EVE, Life, Made
from tests.audit.signed import KEYS, Passkey, document_of

Kept = dict[int, str]
Signed = tuple[dict[str, bytes], Kept, tuple[int, str, int | None], str]
"""Files of the bundle, what is kept outside, what has to be found, and the keys that people gave."""
SIGNED: Final[dict[str, Callable[[], Signed]]] = {}
GIVEN: Final = f"# what Ada read from the page of her account\n{ADA} {KEYS[ADA].fingerprint}\n"


def case(make: Callable[[], Signed]) -> Callable[[], Signed]:
    SIGNED[make.__name__.replace("_", "-")] = make
    return make


def kept(lines: Sequence[bytes], *sizes: int) -> Kept:
    return {size: making.checkpoint(lines, size) for size in sizes or (10, len(lines))}


def pending() -> tuple[Made, Life, Kept]:
    """One that was signed and done, and one that waits; 19 events, and what was kept of them."""
    made = Made()
    signed.whole_life(made, "1001")
    life = signed.propose(made, "1004")
    return made, life, kept(making.linked(made.events), 10, 19)


@case
def good_signed() -> Signed:
    made = Made()
    signed.whole_life(made, "1001")
    return making.members(made), kept(making.linked(made.events)), (0, "", None), GIVEN


@case
def good_signed_run() -> Signed:
    files, outside = of_run(with_keys=True)
    return files, outside, (0, "", None), ""


@case
def signed_run_without_registration() -> Signed:
    files, outside = of_run(with_keys=False)
    return files, outside, (2, "registration of passkeys that signed", None), ""


def of_run(*, with_keys: bool) -> tuple[dict[str, bytes], Kept]:
    made = Made()
    making.whole_life(made, "1000")
    life = signed.whole_life(made, "1001")
    lines = making.linked(made.events)
    places = [
        seq for seq, event in enumerate(made.events, 1)
        if event["run"] == life.run or (with_keys and event["kind"] == "user.mfa_added")
    ]  # fmt: skip
    ids = {life.run, life.step, life.proposal, life.command, *life.decisions}
    rows = [row for row in made.rows if row["id"] in ids or row.get("command_id") == life.command]
    bare = Made(
        rows=rows, contracts=[line for line in made.contracts if line["digest"] == life.digest],
        views=[line for line in made.views if line["digest"] == life.view],
    )  # fmt: skip
    files = making.members(
        bare, [lines[seq - 1] for seq in places], scope={"kind": "run", "run_id": life.run}, first_seq=places[0],
        proofs=making.proofs(lines, places, len(lines)),
    )  # fmt: skip
    return files, kept(lines)


@case
def forged_without_signature() -> Signed:
    """Vote, approval and command with all their rows, as the product would have made them."""
    made, life, outside = pending()
    making.vote(made, life)
    making.order(made, life)
    making.execute(made, life)
    return making.members(made), outside, (1, "signature", 21), ""


@case
def forged_with_copied_signature() -> Signed:
    made, life, outside = pending()
    first = next(event for event in made.events if event["kind"] == "proposal.signed")
    evidence = {name: value for name, value in first["body"].items() if name != "decision_id"}
    making.vote(made, life)
    signed.sign(made, life, evidence)
    making.order(made, life)
    return making.members(made), outside, (1, "signature", 21), ""


@case
def forged_with_copied_signature_on_another_document() -> Signed:
    made, life, outside = pending()
    first = next(event for event in made.events if event["kind"] == "proposal.signed")
    evidence = {name: value for name, value in first["body"].items() if name != "decision_id"}
    making.vote(made, life)
    signed.sign(made, life, evidence | {"document": document_of(life)})
    making.order(made, life)
    return making.members(made), outside, (1, "signature", 21), ""


@case
def forged_with_unknown_passkey() -> Signed:
    """Ada's approval, by a key that was never hers."""
    return _by(KEYS[EVE], "")


@case
def forged_with_passkey_registered_afterwards() -> Signed:
    made, life, outside = pending()
    other = Passkey("later")
    making.vote(made, life)
    signed.sign(made, life, other.signed(document_of(life)))
    making.order(made, life)
    signed.register(made, ADA, other)
    return making.members(made), outside, (1, "passkey", 21), ""


def _by(key: Passkey, given: str) -> Signed:
    made, life, outside = pending()
    making.vote(made, life)
    signed.sign(made, life, key.signed(document_of(life)))
    making.order(made, life)
    return making.members(made), outside, (1, "passkey", 21), given


@case
def forged_with_planted_passkey() -> Signed:
    """A key that somebody registered for Ada first: only the keys that she herself gave show it."""
    made, life, _ = pending()
    planted = Passkey("plant")
    signed.register(made, ADA, planted)
    making.vote(made, life)
    signed.sign(made, life, planted.signed(document_of(life)))
    making.order(made, life)
    return making.members(made), kept(making.linked(made.events)), (1, "passkey", 22), GIVEN


@case
def forged_while_nobody_was_recognised() -> Signed:
    made, life, outside = pending()
    making.vote(made, life)
    signed.sign(made, life, KEYS[ADA].signed(document_of(life), flags=1))
    making.order(made, life)
    return making.members(made), outside, (1, "signature", 21), ""


@case
def signature_changed() -> Signed:
    made = Made()
    life = signed.whole_life(made, "1001")
    row = next(row for row in made.rows if row["table"] == "signature")
    row["signature"] = row["signature"].replace(row["signature"][:8], "AAAAAAAA")
    assert life.decisions == [row["id"]]
    return making.members(made), kept(making.linked(made.events)), (1, "row", None), ""


@case
def signature_gone() -> Signed:
    made = Made()
    signed.whole_life(made, "1001")
    made.rows = [row for row in made.rows if row["table"] != "signature"]
    return making.members(made), kept(making.linked(made.events)), (1, "row", None), ""


@case
def made_without_the_demand() -> Signed:
    """The event of its making does not say what its contract says: each approval must be signed."""
    made = Made()
    life = signed.propose(made, "1001")
    del made.events[-1]["body"]["approval"]
    making.vote(made, life)
    making.order(made, life)
    return making.members(made), kept(making.linked(made.events), 2, 7), (1, "signature", None), ""
