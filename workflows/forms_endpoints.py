"""Forms of the endpoints for webhooks. They read, and decide nothing."""

import re
from typing import Any, Final
from uuid import UUID

from django import forms

from access.forms_people import as_shown
from access.models import Agent
from common.display import visible
from workflows import registry
from workflows.webhooks import Names, Scheme

_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,60}", re.ASCII)


class NewEndpoint(forms.Form):
    """Who delivers here, what it starts, and how it signs. The address and the secret are made by us."""

    name = forms.SlugField(
        label="Name", max_length=60, help_text="Small letters, digits and hyphens.",
        error_messages={
            "required": "An endpoint needs a name.", "invalid": "Letters, digits and hyphens only: shop-orders.",
        },
    )  # fmt: skip
    agent = forms.ModelChoiceField(
        Agent.objects.none(), label="Automation", empty_label="Choose…",
        help_text="It asks for what is delivered here; who is behind it never decides on it.",
        error_messages={"required": "Choose the automation."},
    )  # fmt: skip
    workflow = forms.ChoiceField(label="Starts", error_messages={"required": "Choose the workflow."})
    system = forms.CharField(
        label="Source", max_length=60, help_text="What the system that delivers is called, such as helpdesk.",
        error_messages={"required": "Say which system delivers here."},
    )  # fmt: skip
    input_member = forms.CharField(
        label="Member of the body that is the input", max_length=60, required=False,
        help_text="Such as data. Empty: the whole body.",
    )  # fmt: skip
    signature_header = forms.CharField(
        label="Header of the signature", max_length=60, required=False,
        help_text="Only for a sender that signs in its own way (HMAC-SHA-256). Empty: Standard Webhooks.",
    )  # fmt: skip
    timestamp_header = forms.CharField(
        label="Header of the time",
        max_length=60,
        required=False,
        help_text="Beside such a signature; signed too.",
    )

    def __init__(self, *args: Any, tenant_id: UUID, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agent: Any = self.fields["agent"]
        agent.queryset = Agent.objects.filter(tenant_id=tenant_id, is_active=True).order_by("name")
        agent.label_from_instance = lambda row: visible(row.name)
        flows: Any = self.fields["workflow"]
        known = [(flow.name, f"{flow.title} ({flow.name})") for flow in registry.workflows() if flow.stages]
        flows.choices = [("", "Choose…"), *known]

    def clean_system(self) -> str:
        return as_shown(self.cleaned_data["system"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in ("signature_header", "timestamp_header"):
            if cleaned.get(name) and not _HEADER.fullmatch(cleaned[name]):
                self.add_error(name, "A header has letters, digits and hyphens.")
        return cleaned

    def names(self) -> Names:
        """How the sender signs, of a valid form."""
        said = self.cleaned_data
        if not said["signature_header"]:
            return Names()
        time = said["timestamp_header"] or "x-timestamp"
        return Names(Scheme.HMAC, said["signature_header"].lower(), time.lower())
