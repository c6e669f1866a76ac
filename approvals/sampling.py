"""Automatic actions that a person looks at afterwards: the draw, what is said about them, and what adds up.

The draw is an HMAC of the command's id, which nobody chooses, under a key of the tenant, which no proposer knows: each
action has the same chance, nobody can tell before, and whoever holds the key draws the same again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from access.enums import Role
from access.selectors import standings
from approvals.enums import AfterVerdict
from approvals.models import Proposal, Sample
from approvals.refusals import DecisionRefused, NotEligible, OwnProposal, ReasonRequired, TokenCannotDecide
from audit.actions import record
from audit.actors import Actor, Via
from common.clock import Clock
from common.digests import tenant_hmac
from common.errors import InvalidInput, NotFound
from common.tx import action, require_transaction

PURPOSE: Final = "review-sample"
_PLACES: Final = 10_000
_WHOLE: Final = 1 << 256
WINDOW: Final = timedelta(days=90)
ALARMING: Final = 2
"""From so many wrong ones on a share of wrong ones says something."""


class AlreadySaid(DecisionRefused):
    """Somebody has looked at this one already. What they said stands."""

    code = "already_said"


class UnknownVerdict(InvalidInput):
    """What is said afterwards is one of: fine, wrong."""

    code = "unknown_verdict"


def is_drawn(tenant_id: UUID, command_id: UUID, share: Decimal) -> bool:
    """Whether this command is looked at afterwards, where ``share`` (steps of 0.0001) of all are."""
    mark = tenant_hmac(tenant_id, PURPOSE, command_id.bytes)
    return int(mark.removeprefix("hmac:"), 16) * _PLACES < int(share * _PLACES) * _WHOLE


def draw(
    proposal: Proposal, command_id: UUID, *, share: Decimal, wrong_limit: Decimal, by: Actor, now: datetime
) -> bool:
    """Draw for an action that a rule has just approved; whether it was picked. It is shown once it has been done."""
    require_transaction()
    if not is_drawn(proposal.tenant_id, command_id, share):
        return False
    sample = Sample.objects.create(
        tenant_id=proposal.tenant_id, proposal=proposal, command_id=command_id, workflow=proposal.workflow,
        share=share, wrong_limit=wrong_limit, picked_at=now,
    )  # fmt: skip
    _record(sample, "sample.drawn", by=by, body={"command_id": str(command_id), "share": str(share)})
    return True


@action
def say(*, tenant_id: UUID, sample_id: UUID, verdict: str, words: str, by: Actor, clock: Clock) -> Sample:
    """What a person says about an automatic action afterwards, once. It changes nothing of what was done.

    Raises UnknownVerdict, ReasonRequired for a *wrong* without words, TokenCannotDecide, NotEligible, OwnProposal,
    AlreadySaid, NotFound. Where too many were wrong lately, the owner's alarm is an event of its own.
    """
    if verdict not in AfterVerdict.values:
        raise UnknownVerdict
    sample = _locked(tenant_id, sample_id)
    check_may_say(sample, by)
    if sample.at is not None:
        raise AlreadySaid(verdict=sample.verdict)
    if verdict == AfterVerdict.WRONG and not words.strip():
        raise ReasonRequired
    sample.verdict, sample.words, sample.user_id, sample.at = verdict, words.strip(), by.user_id, clock()
    before = lately(tenant_id, sample.workflow, sample.at)
    sample.save(update_fields=["verdict", "words", "user", "at"])
    _record(sample, "sample.said", by=by, body={"verdict": verdict})
    _ring(sample, before, by=by)
    return sample


def _ring(sample: Sample, before: "Tally", *, by: Actor) -> None:
    """Once, when the share of wrong ones passes the limit; again when it has been below meanwhile."""
    after = before.with_one(wrong=sample.verdict == AfterVerdict.WRONG)
    if after.passes(sample.wrong_limit) and not before.passes(sample.wrong_limit):
        body = {
            "workflow": sample.workflow,
            "said": after.said,
            "wrong": after.wrong,
            "limit": str(sample.wrong_limit),
        }
        _record(sample, "sample.limit_passed", by=by, body=body)


def check_may_say(sample: Sample, by: Actor) -> None:
    """A reviewer of the group that a person would have been asked of, and nobody of the proposer's side."""
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotDecide()
    standing = standings(sample.tenant_id, [by.user_id]).get(by.user_id)
    group = sample.proposal.group_id
    if standing is None or Role.REVIEWER not in standing.roles:
        raise NotEligible()
    if group is not None and group not in standing.group_ids:
        raise NotEligible()
    if not standing.accounts.isdisjoint(sample.proposal.excluded_users):
        raise OwnProposal()


def may_say(sample: Sample, by: Actor) -> bool:
    try:
        check_may_say(sample, by)
    except DecisionRefused:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Tally:
    """What was said lately about the samples of a workflow."""

    said: int
    wrong: int

    def with_one(self, *, wrong: bool) -> "Tally":
        return Tally(self.said + 1, self.wrong + wrong)

    def passes(self, limit: Decimal) -> bool:
        return self.wrong >= ALARMING and self.wrong > limit * self.said


def lately(tenant_id: UUID, workflow: str, now: datetime) -> Tally:
    """Of the last 90 days."""
    said = Sample.objects.filter(tenant_id=tenant_id, workflow=workflow, at__gt=now - WINDOW)
    found = said.aggregate(said=Count("pk"), wrong=Count("pk", filter=Q(verdict=AfterVerdict.WRONG)))
    return Tally(found["said"], found["wrong"])


def waiting(tenant_id: UUID) -> QuerySet[Sample]:
    """Drawn, done, and not looked at yet. What was refused or is not known is no success, and is asked elsewhere.

    The command hangs on the proposal from the other side.
    """
    found = Sample.objects.filter(tenant_id=tenant_id, at=None, proposal__command__status="confirmed")
    return found.select_related("proposal", "proposal__group")


def said(tenant_id: UUID) -> QuerySet[Sample]:
    """What people have said, newest first."""
    found = Sample.objects.filter(tenant_id=tenant_id, at__isnull=False)
    return found.select_related("proposal", "proposal__group", "user").order_by("-at", "-id")


@dataclass(frozen=True, slots=True)
class Counter:
    """Of one workflow: how many wait, and what was said in the last 90 days."""

    workflow: str
    waiting: int
    tally: Tally
    limit: Decimal
    share: Decimal

    @property
    def alarming(self) -> bool:
        return self.tally.passes(self.limit)

    @property
    def wrong_percent(self) -> str:
        return f"{100 * self.tally.wrong / self.tally.said:.1f} %" if self.tally.said else "–"

    @property
    def share_percent(self) -> str:
        return f"{(100 * self.share).normalize():f} %"

    @property
    def limit_percent(self) -> str:
        return f"{(100 * self.limit).normalize():f} %"


def counters(tenant_id: UUID, now: datetime) -> list[Counter]:
    """One of each workflow of which anything was drawn, by name; the limit and the share are those drawn last."""
    done = Q(at=None, proposal__command__status="confirmed")
    recent = Q(at__gt=now - WINDOW)
    rows = Sample.objects.filter(tenant_id=tenant_id).values("workflow").annotate(
        waiting=Count("pk", filter=done), said=Count("pk", filter=recent),
        wrong=Count("pk", filter=recent & Q(verdict=AfterVerdict.WRONG)),
    )  # fmt: skip
    last = {
        row["workflow"]: row
        for row in Sample.objects.filter(tenant_id=tenant_id)
        .order_by("workflow", "-picked_at")
        .distinct("workflow")
        .values("workflow", "wrong_limit", "share")
    }
    return [
        Counter(
            row["workflow"], row["waiting"], Tally(row["said"], row["wrong"]),
            last[row["workflow"]]["wrong_limit"], last[row["workflow"]]["share"],
        )
        for row in rows.order_by("workflow")
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class DrawnAgain:
    """Of the actions that rules approved in workflows with samples: how many were drawn, and of which that differs."""

    automatic: int
    drawn: int
    differ: tuple[UUID, ...]


def drawn_again(tenant_id: UUID) -> DrawnAgain:
    """The draw once more, for auditors: by the share that each proposal keeps, under today's secret."""
    rows = Proposal.objects.filter(
        tenant_id=tenant_id, policy__review__mode="sampling", command__isnull=False
    ).values_list("command__pk", "policy__review__share", "sample__pk")
    differ, drawn, automatic = [], 0, 0
    for command, share, sample in rows.iterator():
        automatic += 1
        drawn += sample is not None
        if is_drawn(tenant_id, command, Decimal(share)) != (sample is not None):
            differ.append(command)
    return DrawnAgain(automatic, drawn, tuple(differ))


def _locked(tenant_id: UUID, sample_id: UUID) -> Sample:
    found = Sample.objects.select_for_update(of=("self",), no_key=True).select_related("proposal")
    sample = found.filter(tenant_id=tenant_id, pk=sample_id, proposal__command__status="confirmed").first()
    if sample is None:
        raise NotFound
    return sample


def _record(sample: Sample, kind: str, *, by: Actor, body: dict[str, Any]) -> None:
    record(
        by=by, kind=kind, tenant_id=sample.tenant_id, subject_type="sample", subject_id=sample.pk,
        run_id=sample.proposal.run_id, digest=sample.proposal.digest, body=body,
    )  # fmt: skip
