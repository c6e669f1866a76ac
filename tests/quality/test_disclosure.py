"""What leaves is decided in one module: nobody else compares classes, and who shows sealed columns is listed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.sealed import sealed_models, sealed_names

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = (
    "approvals/api*.py", "approvals/screens/*.py", "approvals/views*.py", "approvals/tables*.py", "workflows/api*.py",
    "workflows/screens/*.py", "workflows/views*.py", "workflows/tables*.py", "workflows/receipt.py",
    "workflows/selectors*.py", "workflows/progress.py", "repair/*.py", "repair/packet/*.py", "repair/incidents/*.py",
    "approvals/bundled.py", "audit/*.py", "config/*.py", "access/*.py",
    "approvals/messages.py", "approvals/telling.py", "notify/*.py", "notify/*/*.py",
)  # fmt: skip
# Names of sealed columns that are also names of other things are looked for on rows only.
COMMON = {"contract", "view", "content", "reason", "asks", "words", "signal"}
ROWS = {
    "proposal", "row", "old", "found", "document", "vote", "decision", "evidence", "piece", "run", "step",
    "self.proposal", "incident",
}  # fmt: skip
READS = {
    "approvals/api.py": {"view"},  # the bytes that are signed, for those whose role is shown all
    # Made without personal values; words of people for the proposer's own token.
    "approvals/api_schemas.py": {"consequence", "wording"},
    "approvals/views_afterwards.py": {"words"},  # for whom personal values are
    "approvals/screens/evidence.py": {"content"},  # `may_see`, by the class of the piece
    "approvals/screens/people.py": {"reason"},  # `words` says for whom
    "approvals/screens/questions.py": {
        "wording"
    },  # `words`: by role, or for who asked, was asked or answered
    "approvals/screens/questions_to_me.py": {"wording"},  # for who was asked, and nobody else
    "approvals/screens/rejections.py": {"lifted_why"},  # `words` says for whom
    "approvals/screens/proposal.py": {"reason"},  # `said`, for whom personal values are
    # Fingerprints of contents; a consequence is made without personal values.
    "repair/comparing.py": {"consequence", "content"},
    "repair/comparing_sides.py": {"consequence", "contract"},  # the contract's pins
    "repair/packet/action.py": {"contract"},  # the words of the business key are made with `for_lists`
    "repair/packet/case.py": {"contract"},  # its pins, which are versions of records
    "repair/rule_drafts.py": {"contract"},  # compared as it is, written as `redacted` has it
    "repair/packet/document.py": {"user_message"},  # by the recipient: `told_in_list`, and a fingerprint
    # What people wrote about an incident as a whole is for its readers and its report; of one run, for its readers.
    "repair/incidents/acting.py": {"trouble", "hypothesis", "remedy", "signal", "words"},  # as it is typed
    "repair/incidents/forms.py": {"trouble", "hypothesis", "remedy", "signal"},  # to be changed
    "repair/incidents/report.py": {"trouble", "hypothesis", "remedy", "signal"},
    "repair/incidents/screen.py": {"trouble", "hypothesis", "remedy", "signal", "words"},
    "workflows/screens/run.py": {"user_message", "correction_reason", "cancel_reason"},  # `own_words`
    # The stored consequence is made without personal values; `words` says for whom people's own are.
    "workflows/screens/told_document.py": {"consequence", "reason"},
    "workflows/screens/words.py": {"asks"},  # the question itself, which its author words for others to read
    "workflows/api_proposals.py": {"volatile"},  # of what was just sent, to compare a claimed hash
    "workflows/views.py": {"content"},  # opened by a role that may, and recorded
    "workflows/selectors.py": {"user_message", "asks"},  # `told_in_list`; the requester's own question
}


def modules() -> Iterator[Path]:
    for pattern in OUTPUTS:
        yield from sorted(ROOT.glob(pattern))


def reads(path: Path) -> set[str]:
    names = {name for model in sealed_models() for name in sealed_names(model)}
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Attribute) or node.attr not in names:
            continue
        if node.attr not in COMMON or ast.unparse(node.value) in ROWS:
            found.add(node.attr)
    return found


@pytest.mark.parametrize("path", list(modules()), ids=lambda path: str(path.relative_to(ROOT)))
def test_sealed_columns_are_read_for_output_only_where_somebody_thought_about_it(path: Path) -> None:
    allowed = READS.get(str(path.relative_to(ROOT)), set())
    assert reads(path) <= allowed, "ask common/disclosure.py what leaves, then say so here"


def test_nobody_else_compares_classes() -> None:
    ours = {"common/disclosure.py", "approvals/screens/evidence.py"}  # the latter words it
    found = set()
    for app in ("access", "approvals", "audit", "common", "config", "notify", "repair", "workflows"):
        for path in (ROOT / app).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Compare) and "PERSONAL" in ast.unparse(node):
                    found.add(str(path.relative_to(ROOT)))
    assert found - {"approvals/policies.py"} <= ours
