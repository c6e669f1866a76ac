"""Forms of the review desk: they read what was sent, and decide nothing."""

from dataclasses import dataclass, replace

from django import forms
from django.http import QueryDict

from access.signing_keys import SignatureInvalid
from approvals.actions import Submission
from approvals.enums import DecisionKind, ReasonCode, Remember
from approvals.signing import Answer
from common.strictjson import JsonRefused, parse

REASON_LIMIT = 2000
SIGNATURE_LIMIT = 16_000
ANSWER = "_answer_text"
"""How the name of a field ends that holds the answer to a question; it begins with the question's id."""
ASK = "ask"


class DecisionForm(forms.Form):
    """One decision as the bar sends it. Each way of saying no has a text field of its own."""

    decision = forms.ChoiceField(choices=DecisionKind.choices)
    digest = forms.CharField(max_length=100)
    view_digest = forms.CharField(max_length=100)
    reason_code = forms.ChoiceField(choices=ReasonCode.choices, required=False)
    reject_reason = forms.CharField(max_length=REASON_LIMIT, required=False)
    changes_reason = forms.CharField(max_length=REASON_LIMIT, required=False)
    remember = forms.ChoiceField(choices=Remember.choices, required=False)
    signature = forms.CharField(max_length=SIGNATURE_LIMIT, required=False)
    """JSON: the ticket that the page got, and what the passkey answered."""


class AskForm(forms.Form):
    """A question: of the proposer where no colleague is chosen."""

    question_text = forms.CharField(max_length=REASON_LIMIT, required=False)
    ask_of = forms.UUIDField(required=False)


class LiftForm(forms.Form):
    """Why a remembered rejection is lifted."""

    why_text = forms.CharField(
        label="Why the same may be asked again", max_length=REASON_LIMIT, widget=forms.Textarea(attrs={"rows": 4}),
        error_messages={"required": "Say why: it stands in the history of this proposal."},
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Typed:
    """What the person had done on the page so far: it is shown again when a decision is refused."""

    decision: str = ""
    reason_code: str = ""
    reject_reason: str = ""
    changes_reason: str = ""
    remember: str = ""
    question_text: str = ""
    ask_of: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    """Question ids, each with what was written into its field."""
    acknowledged: frozenset[str] = frozenset()
    receipts: tuple[str, ...] = ()
    opened: frozenset[str] = frozenset()

    @property
    def words(self) -> tuple[str, ...]:
        """Everything that was written into the bar, for where its fields are gone."""
        return tuple(filter(str.strip, (self.reject_reason, self.changes_reason, self.question_text)))

    @property
    def is_nothing(self) -> bool:
        """Whether a page made anew lacks nothing of it."""
        answers = any(text.strip() for _, text in self.answers)
        return not (self.words or answers or self.acknowledged or self.opened or self.reason_code)

    def answer_to(self, question: str) -> str:
        return dict(self.answers).get(question, "")

    def without_question(self) -> "Typed":
        """The question was sent."""
        return replace(self, decision="", question_text="", ask_of="")

    def without_answer(self, question: str) -> "Typed":
        """That answer was sent."""
        return replace(self, answers=tuple(one for one in self.answers if one[0] != question))

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
        remember=data.get("remember", ""),
        question_text=data.get("question_text", "")[:REASON_LIMIT],
        ask_of=data.get("ask_of", ""),
        answers=tuple(
            (name.removesuffix(ANSWER), text[:REASON_LIMIT])
            for name, text in data.items()
            if isinstance(text, str) and name.endswith(ANSWER)
        ),
        acknowledged=frozenset(data.getlist("acknowledged")),
        receipts=tuple(data.getlist("receipt")),
        opened=frozenset(data.getlist("opened")),
    )


def answer_in(text: str, rp_id: str) -> Answer | None:
    """What a passkey signed, as the page sent it; None where it sent nothing. Raises SignatureInvalid."""
    if not text:
        return None
    try:
        found = parse(text.encode(errors="surrogatepass"))
    except JsonRefused as error:
        raise SignatureInvalid() from error
    match found:
        case {"ticket": str(ticket), "credential": dict(credential)}:
            return Answer(ticket, credential, rp_id)
    raise SignatureInvalid()


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
        remember=said["remember"] if kind == DecisionKind.REJECT else "",
    )
