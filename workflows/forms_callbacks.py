"""Forms of the callbacks. They read, and decide nothing."""

from django import forms


class NewCallback(forms.Form):
    """Where runs may call back. The secret is made by us."""

    name = forms.SlugField(
        label="Name", max_length=60, help_text="Small letters, digits and hyphens. Requests may name it.",
        error_messages={"required": "A callback needs a name."},
    )  # fmt: skip
    url = forms.CharField(
        label="Address", max_length=500, help_text="https, on a public host, without a redirect.",
        error_messages={"required": "Say where to call."},
    )  # fmt: skip
