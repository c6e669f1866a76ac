"""Forms of the runs desk: they read what was typed, and decide nothing."""

from django import forms


class OutcomeForm(forms.Form):
    """What the user really got, and how that is known."""

    outcome = forms.RegexField(
        r"^[a-z][a-z0-9_]{1,38}$",
        label="What the user got",
        widget=forms.TextInput(attrs={"list": "known-outcomes", "autocomplete": "off"}),
        help_text="One word in the user's terms: one of those that this workflow knows, or your own. "
        "Lower case, no spaces.",
        error_messages={"invalid": "Use lower-case letters, digits and underscores, at most 39 of them."},
    )
    reason = forms.CharField(
        label="How you know", max_length=500, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It stands beside the correction for good.",
    )  # fmt: skip


class CancelForm(forms.Form):
    """Why a run should stop."""

    reason = forms.CharField(
        label="Why it should stop", max_length=500, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It stands in the history for good, and whoever was asked to decide reads it.",
    )  # fmt: skip
