"""The form of what is said afterwards. It reads, and decides nothing."""

from django import forms

from approvals.enums import AfterVerdict

LONGEST = 2000


class SayForm(forms.Form):
    """Fine, or wrong and why."""

    verdict = forms.ChoiceField(
        label="Looking back, it was", choices=AfterVerdict.choices, widget=forms.RadioSelect,
        error_messages={"required": "Say whether it was fine or wrong.", "invalid_choice": "It was fine, or wrong."},
    )  # fmt: skip
    words = forms.CharField(
        label="In your words", required=False, max_length=LONGEST, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Needed where it was wrong. It changes nothing of what was done.",
    )  # fmt: skip
