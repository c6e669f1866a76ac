"""What is asked of the list of what was let through."""

from datetime import datetime
from typing import Any, Final

from django import forms

from audit.asking import STRETCHES, AskingForm, instant, text
from workflows.let_through import DEPUTY, Asked

LABELS: Final = {
    "person": "Person", "automation": "Automation", "workflow": "Workflow", "policy": "Policy version",
    "operation": "Operation", "target": "Target", "through": "Asked for through",
    "via": "By", "when": "Decided", "since": "From", "until": "Until",
}  # fmt: skip
BY: Final = {"people": "People", "rule": "A rule alone", DEPUTY: "Deputies, in somebody's stead"}


class LetThroughForm(AskingForm):
    """Who, under which policy, what and when."""

    labels = LABELS

    person = text("Person", "Person")
    automation = text("Automation", "api:intake")
    through = text("Token, or what else it came through", "plc_…, token:…, endpoint:…")
    workflow = text("Workflow", "Workflow")
    policy = forms.IntegerField(
        label="Policy version", required=False, min_value=0, max_value=2**31 - 1,
        widget=forms.NumberInput(attrs={"placeholder": "Policy version", "aria-label": "Policy version"}),
    )  # fmt: skip
    operation = text("Operation", "Operation")
    target = text("Target", "Target, or 1042")
    via = forms.ChoiceField(
        label="By", required=False, choices=[("", "People and rules"), *BY.items()],
        widget=forms.Select(attrs={"aria-label": "By people or by a rule"}),
    )  # fmt: skip
    when = forms.ChoiceField(
        label="Decided", required=False, choices=[("", "Any time"), *((k, v[0]) for k, v in STRETCHES.items())],
        widget=forms.Select(attrs={"aria-label": "Decided"}),
    )  # fmt: skip
    since = instant("Decided from (UTC)")
    until = instant("Decided until (UTC)")

    def said(self, name: str, value: Any) -> str:
        return BY[value] if name == "via" else super().said(name, value)

    def asked(self, now: datetime) -> Asked:
        given = dict(self.given)
        begin = now - STRETCHES[given.pop("when")][1] if "when" in given else None
        since = max(filter(None, (given.pop("since", None), begin)), default=None)
        return Asked(since=since, **given)
