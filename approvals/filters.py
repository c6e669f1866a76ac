"""Filters of the review desk."""

from typing import Any, ClassVar

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from approvals.models import Proposal


class QueueFilter(django_filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Words and workflow. The workflows offered are those that have something waiting."""

    q = django_filters.CharFilter(
        method="find",
        widget=forms.TextInput(
            attrs={"type": "search", "class": "grow", "placeholder": "Order, operation", "maxlength": 100}
        ),
    )
    workflow = django_filters.ChoiceFilter(
        empty_label="Any workflow", widget=forms.Select(attrs={"class": "wide-only"})
    )

    class Meta:
        model = Proposal
        fields: ClassVar[list[str]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = self.queryset.order_by("workflow").values_list("workflow", flat=True).distinct()
        self.filters["workflow"].extra["choices"] = [(name, name) for name in names]

    def find(self, queryset: QuerySet[Proposal], name: str, value: str) -> QuerySet[Proposal]:
        """Rows whose sentence, target, operation or workflow holds the words as they stand."""
        words = value.strip()[:100]
        return queryset.filter(
            Q(summary__icontains=words) | Q(consequence__icontains=words) | Q(target__icontains=words)
            | Q(operation__icontains=words) | Q(workflow__icontains=words)
        )  # fmt: skip

    @property
    def is_active(self) -> bool:
        """Whether anything is asked for that narrows the list."""
        return bool(self.form.is_valid() and any(self.form.cleaned_data.values()))
