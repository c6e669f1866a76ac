"""Filters of the list of runs."""

from typing import Any, ClassVar

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from common.display import visible
from workflows import registry
from workflows.enums import RunStatus
from workflows.finding import run_condition
from workflows.models import Run


def _text(label: str, placeholder: str, **attrs: str) -> forms.TextInput:
    return forms.TextInput(
        attrs={"placeholder": placeholder, "aria-label": label, "maxlength": "200"} | attrs
    )


class RunFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Words, workflow, state and requester."""

    q = django_filters.CharFilter(
        method="find", label="Find",
        widget=_text("Find", "Run, order, source event", type="search", **{"class": "grow"}),
    )  # fmt: skip
    workflow = django_filters.ChoiceFilter(
        label="Workflow",
        empty_label="Any workflow",
        widget=forms.Select(attrs={"aria-label": "Workflow", "class": "wide-only"}),
    )
    status = django_filters.ChoiceFilter(
        label="State", empty_label="Any state", choices=RunStatus.choices,
        widget=forms.Select(attrs={"aria-label": "State"}),
    )  # fmt: skip
    requester = django_filters.CharFilter(
        method="asked_by", label="Asked by", widget=_text("Asked by", "Asked by", **{"class": "wide-only"})
    )

    class Meta:
        model = Run
        fields: ClassVar[list[str]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.tenant_id = kwargs.pop("tenant_id")
        super().__init__(*args, **kwargs)
        known = {flow.name: flow.title for flow in registry.workflows()}
        asked = self.data.get("workflow", "")
        if asked and "\0" not in asked:  # at U+0000 PostgreSQL would break off
            known.setdefault(asked, visible(asked[:80]))
        self.filters["workflow"].extra["choices"] = sorted(known.items(), key=lambda item: item[1])

    def find(self, queryset: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        wanted = Run.objects.filter(run_condition(self.tenant_id, value), tenant_id=self.tenant_id)
        return queryset.filter(pk__in=wanted.values("pk"))

    def asked_by(self, queryset: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return queryset.filter(Q(requested_by=value) | Q(on_behalf_of=value))

    @property
    def is_active(self) -> bool:
        """Whether anything is asked for that narrows the list."""
        return bool(self.form.is_valid() and any(self.form.cleaned_data.values()))
