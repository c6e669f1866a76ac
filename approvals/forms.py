"""Forms of the review desk: they read what was sent, and decide nothing."""

from dataclasses import dataclass

from django import forms
from django.http import QueryDict

from approvals.actions import Submission
from approvals.enums import DecisionKind, ReasonCode

REASON_LIMIT = 2000


class DecisionForm(forms.Form):
    """One decision as the bar sends it. Each way of saying no has a text field of its own."""

    decision = forms.ChoiceField(choices=DecisionKind.choices)
    digest = forms.CharField(max_length=100)
    view_digest = forms.CharField(max_length=100)
    reason_code = forms.ChoiceField(choices=ReasonCode.choices, required=False)
    reject_reason = forms.CharField(max_length=REASON_LIMIT, required=False)
    changes_reason = forms.CharField(max_length=REASON_LIMIT, required=False)


@dataclass(frozen=True, slots=True)
class Typed:
    """What the person had done on the page so far: it is shown again when a decision is refused."""

    decision: str = ""
    reason_code: str = ""
    reject_reason: str = ""
    changes_reason: str = ""
    acknowledged: frozenset[str] = frozenset()
    receipts: tuple[str, ...] = ()
    opened: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """What was written for the decision that was sent."""
        return self.changes_reason if self.decision == DecisionKind.REQUEST_CHANGES else self.reject_reason


def typed_in(data: QueryDict) -> Typed:
    """What stood in the page's fields, valid or not."""
    return Typed(
        decision=data.get("decision", ""),
        reason_code=data.get("reason_code", ""),
        reject_reason=data.get("reject_reason", "")[:REASON_LIMIT],
        changes_reason=data.get("changes_reason", "")[:REASON_LIMIT],
        acknowledged=frozenset(data.getlist("acknowledged")),
        receipts=tuple(data.getlist("receipt")),
        opened=frozenset(data.getlist("opened")),
    )


def submission_of(form: DecisionForm, typed: Typed) -> Submission:
    """The submission for the action, from a valid form. An approval carries no reason and no code."""
    said = form.cleaned_data
    kind = said["decision"]
    return Submission(
        kind=kind,
        digest=said["digest"],
        view_digest=said["view_digest"],
        view_receipts=typed.receipts,
        acknowledged=tuple(sorted(typed.acknowledged)),
        reason_code=said["reason_code"] if kind == DecisionKind.REJECT else "",
        reason="" if kind == DecisionKind.APPROVE else typed.text,
    )
