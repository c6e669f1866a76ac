"""What people had before them: the stored contract and view of one version, and what each of them was shown of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.urls import reverse

from approvals.models import Decision, Proposal
from approvals.screens.people import WORDS, code_word, name_of
from approvals.screens.proposal import ERASED, UNREADABLE, readable_view
from approvals.viewmodels import MAIN, ViewDocument
from approvals.viewrows import text_or_word
from common.digests import contract_digest, same, view_digest
from common.disclosure import Recipient, disclosed, hides
from common.display import visible
from common.sealed import readable
from common.states_ui import Tone
from workflows.screens.passed import passed_by

MOST_FIELDS: Final = 300
LONGEST: Final = 4_000
"""Characters of one value on this page; the proposal's own page has the whole of it."""


@dataclass(frozen=True, slots=True)
class Before:
    """One version as it lay before people, and whether the stored bytes are still those that were signed."""

    id: str
    href: str
    version: int
    status: str
    mode: str
    headline: str
    digest: str
    view_digest: str
    intact: bool
    gone: str
    consequence: str
    fields: tuple[tuple[str, str], ...]
    unbound: tuple[tuple[str, str], ...]
    changes: tuple[tuple[str, str], ...]
    evidence: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    policy: str
    more: str
    bytes: str
    no_bytes: str


@dataclass(frozen=True, slots=True)
class Vote:
    """One decision, with what the receipts prove that this person was shown."""

    tone: Tone
    icon: str
    text: str
    capacity: str
    digest: str
    view_digest: str
    parts: str
    acknowledged: tuple[str, ...]
    code: str
    said: str
    at: datetime
    replaced_at: datetime | None
    passed_href: str
    """Where everything stands that this person let through."""


def before_of(proposal: Proposal, to: Recipient) -> Before:
    """The stored document of a version, by the reader's role. Nothing is rendered anew."""
    view, contract = readable_view(proposal), readable(proposal, "contract")
    shown = view.fields[:MOST_FIELDS]
    classes = {row.data_class for row in view.fields} | {row.data_class for row in view.bound}
    hidden = any(hides(one, to) for one in classes)
    left = len(view.fields) - len(shown)
    return Before(
        id=str(proposal.pk), href=reverse("approvals:proposal", args=[proposal.pk]), version=proposal.version,
        status=proposal.status, mode=proposal.mode, headline=visible(proposal.summary), digest=proposal.digest,
        view_digest=proposal.view_digest, intact=_intact(proposal, contract), gone=_gone(view),
        consequence=view.consequence,
        fields=tuple((row.label, _cut(disclosed(text_or_word(row), row.data_class, to))) for row in shown)
        + tuple((row.label, _cut(disclosed(row.text, row.data_class, to))) for row in view.bound),
        unbound=tuple((row.label, _cut(disclosed(row.text, row.data_class, to))) for row in view.unbound),
        changes=tuple(
            (f"{row.record}: {row.field}",
             f"{disclosed(row.before, row.data_class, to)} → {disclosed(row.after or 'unknown', row.data_class, to)}")
            for row in view.changes
        ),
        evidence=tuple((f"{piece.kind}: {piece.title}", piece.digest) for piece in view.evidence),
        warnings=tuple(f"{one.label}: {one.sentence}" for one in view.warnings if one not in (ERASED, UNREADABLE)),
        policy=str(proposal.policy.get("because", "")),
        more=f"{left:,} more values stand on the proposal's page." if left else "",
        bytes="" if hidden or contract is None else _cut(visible(bytes(contract).decode(errors="replace")), 20_000),
        no_bytes="The exact bytes hold personal values, which are not for your role." if hidden else "",
    )  # fmt: skip


def vote_of(vote: Decision, view_parts: Sequence[str], *, words: bool) -> Vote:
    """``words``: with what they wrote themselves, for roles that are shown personal data."""
    tone, icon, word = WORDS[vote.kind]
    shown = [part for part in view_parts if part in vote.parts_seen]
    return Vote(
        tone=tone, icon=icon, text=f"{visible(name_of(vote))} {word}", capacity=_capacity(vote), digest=vote.digest,
        view_digest=vote.view_digest, parts=_parts(vote, len(shown), len(view_parts)),
        acknowledged=tuple(visible(one) for one in vote.acknowledged), code=visible(code_word(vote.reason_code)),
        said=_own(vote, words=words), at=vote.at, replaced_at=vote.replaced_at, passed_href=passed_by(vote),
    )  # fmt: skip


def _own(vote: Decision, *, words: bool) -> str:
    if words or not vote.user_id:  # why a rule approved is code's sentence, and nobody's own
        return visible(vote.reason)
    return "in their own words, not shown to your role" if vote.reason else ""


def _capacity(vote: Decision) -> str:
    if not vote.user_id:
        return (
            f"policy version {vote.rule_version}, without a person"
            if vote.rule_version
            else "without a person"
        )
    of = f" of {visible(str(vote.group))}" if vote.group else ""
    stead = f", in the stead of {visible(str(vote.in_stead_of))}" if vote.in_stead_of else ""
    glass = ", under break-glass" if vote.posture else ""
    return f"as {vote.role}{of}{stead}{glass}"


def _parts(vote: Decision, shown: int, of: int) -> str:
    if not vote.user_id:
        return "a rule reads no page"
    if of == 1 and shown == 1:
        return "shown whole: one part, by its receipt"
    opened = [visible(part) for part in vote.parts_seen if part != MAIN]
    names = f" (opened: {', '.join(opened[:20])}{' …' if len(opened) > 20 else ''})" if opened else ""
    return f"shown {shown} of {of} parts, by their receipts{names}"


def _gone(view: ViewDocument) -> str:
    return next((one.sentence for one in view.warnings if one in (ERASED, UNREADABLE)), "")


def _intact(proposal: Proposal, contract: bytes | None) -> bool:
    """Whether both digests that people named are still those of what is stored."""
    view = readable(proposal, "view")
    if contract is None or view is None:
        return False
    return same(contract_digest(bytes(contract)), proposal.digest) and same(
        view_digest(bytes(view)), proposal.view_digest
    )


def _cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters in all)"
