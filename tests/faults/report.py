"""What a run prints: a table for people, and one last line with the seed for whoever counts."""

import json
from collections.abc import Sequence
from typing import TextIO

from tests.faults.chaos import Round
from tests.faults.oracle import COUNTERS

SHOWN = 25
"""Violations that are written out; the line counts all."""


def write_round(found: Round, out: TextIO) -> None:
    plan, judgement = found.plan, found.judgement
    faults = ", ".join(f"{name} {count}" for name, count in sorted(found.faults.items())) or "none"
    out.write(f"\nRound {plan.number}: {plan.kind}, seed {plan.seed}, {found.seconds:.0f} s\n")
    out.write(f"  processes ended {found.deaths}, stopped {found.stops}; faults: {faults}\n")
    out.writelines(f"  {end:<28}{count:>6}\n" for end, count in sorted(judgement.ends.items()))
    bad = {name: count for name, count in judgement.counters.items() if count}
    out.write(f"  violations: {bad or 'none'}\n")
    out.writelines(
        f"    {violation.name}: {violation.detail}\n" for violation in judgement.violations[:SHOWN]
    )
    out.flush()


def line(rounds: Sequence[Round]) -> dict[str, object]:
    """The last line's content; a run is good when ``violated`` is empty."""
    plan = rounds[0].plan
    judgements = [found.judgement for found in rounds]
    counters = {name: sum(judgement.counters[name] for judgement in judgements) for name in COUNTERS}
    kinds = ",".join(dict.fromkeys(found.plan.kind for found in rounds))
    violated = sorted({name for judgement in judgements for name in judgement.names})
    return {
        "seed": plan.seed, "rounds": len(rounds), "provider": kinds, "faults": ",".join(plan.faults),
        "actions": sum(len(judgement.world.lives) for judgement in judgements),
        "effects": sum(judgement.effects for judgement in judgements),
        **counters,
        "deaths": sum(found.deaths for found in rounds), "stops": sum(found.stops for found in rounds),
        "audit_chain": "ok" if not counters["chain_broken"] else "broken",
        "replayed_log": "equals tables" if not counters["projection_diff"] else "differs",
        "seconds": round(sum(found.seconds for found in rounds)), "violated": violated,
    }  # fmt: skip


def write_line(rounds: Sequence[Round], out: TextIO) -> bool:
    """Prints it; whether everything held."""
    found = line(rounds)
    out.write(json.dumps(found) + "\n")
    out.flush()
    return not found["violated"]
