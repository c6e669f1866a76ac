"""Filters of the repair desk."""

from typing import Any, ClassVar
from uuid import UUID

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from repair.models import RepairPacket
from workflows import registry
from workflows.finding import run_condition
from workflows.models import Command, Run


class PacketFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Words, workflow and owner, for packets and for commands without one alike."""

    q = django_filters.CharFilter(
        method="find", label="Find",
        widget=forms.TextInput(attrs={
            "type": "search", "class": "grow", "placeholder": "Run, order, cause", "aria-label": "Find",
            "maxlength": 100,
        }),
    )  # fmt: skip
    workflow = django_filters.ChoiceFilter(
        field_name="run__workflow", label="Workflow", empty_label="Any workflow",
        widget=forms.Select(attrs={"aria-label": "Workflow"}),
    )  # fmt: skip

    class Meta:
        model = RepairPacket
        fields: ClassVar[list[str]] = []

    def __init__(self, *args: Any, tenant_id: UUID, **kwargs: Any) -> None:
        self.tenant_id = tenant_id
        super().__init__(*args, **kwargs)
        known = {flow.name: flow.title for flow in registry.workflows()}
        self.filters["workflow"].extra["choices"] = sorted(known.items(), key=lambda item: item[1])

    def find(self, queryset: QuerySet[RepairPacket], name: str, value: str) -> QuerySet[RepairPacket]:
        words = Q(cause__icontains=value.strip().replace(" ", "_")) | Q(owner__icontains=value.strip())
        return queryset.filter(words | Q(run_id__in=self._runs(value)))

    def bare(self, queryset: QuerySet[Command]) -> QuerySet[Command]:
        """The same narrowing for commands without a packet."""
        asked = self.form.cleaned_data if self.form.is_valid() else {}
        if asked.get("workflow"):
            queryset = queryset.filter(run__workflow=asked["workflow"])
        if asked.get("q"):
            queryset = queryset.filter(run_id__in=self._runs(asked["q"]))
        return queryset

    def _runs(self, text: str) -> Any:
        return Run.objects.filter(run_condition(self.tenant_id, text), tenant_id=self.tenant_id).values("pk")

    @property
    def is_active(self) -> bool:
        """Whether anything is asked for that narrows the list."""
        return bool(self.form.is_valid() and any(self.form.cleaned_data.values()))
