"""The list of kinds of events is what the code records: no more and no less."""

import re
from pathlib import Path
from typing import Any, Final

from approvals.models import Proposal
from audit.filters import GROUPS, TABS, kind_choices
from audit.kinds import KINDS, all_kinds
from workflows.models import Command, Hold, Run, Step

ROOT: Final = Path(__file__).parents[2]
RECORDERS: Final = ("access", "approvals", "audit", "notify", "repair", "workflows")
NO_RECORDERS: Final = ("tables.py", "filters.py", "kinds.py")
KIND: Final = re.compile(rf'f?"({"|".join(KINDS)}|session|decision|lookup)\.([a-z_]+|\{{[a-z_.]+\}})"')
STATED: Final[dict[str, Any]] = {
    "proposal": Proposal,
    "command": Command,
    "hold": Hold,
    "run": Run,
    "step": Step,
}
"""Things of which every state that is reached is an event."""


def reached(model: Any) -> set[str]:
    """The states to which a move leads; one that chooses its target names those that it allows."""
    targets = [move.target for move in model().get_all_status_transitions()]
    return {
        str(state) for target in targets for state in (getattr(target, "allowed_states", None) or [target])
    }


def recorded() -> set[str]:
    found: set[str] = set()
    for app in RECORDERS:
        for path in (ROOT / app).rglob("*.py"):
            if path.name in NO_RECORDERS or "migrations" in path.parts:
                continue
            for thing, what in KIND.findall(path.read_text(encoding="utf-8")):
                if what.endswith("_id"):
                    continue  # the path to a column
                if not what.startswith("{"):
                    found.add(f"{thing}.{what}")
                elif thing in STATED:
                    found |= {f"{thing}.{state}" for state in reached(STATED[thing])}
    return found


def test_the_list_is_what_the_code_records() -> None:
    assert sorted(all_kinds()) == sorted(recorded())


def test_the_filter_offers_every_kind_once_and_no_other() -> None:
    offered = [kind for _, some in kind_choices() if isinstance(some, list) for kind, _ in some]
    assert sorted(offered) == sorted(all_kinds())
    assert {*GROUPS} == {f"{thing}." for thing in KINDS}


def test_each_tab_asks_for_kinds_that_there_are() -> None:
    for kinds in TABS:
        assert {*kinds.split()} <= {*GROUPS, *all_kinds()}, kinds
