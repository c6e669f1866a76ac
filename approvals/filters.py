"""Filters of the review desk."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

import django_filters
from django import forms
from django.db.models import BooleanField, Case, Q, QuerySet, When
from django.http import QueryDict

from approvals.enums import ProposalStatus
from approvals.models import Proposal
from common.display import visible

RISKS: Final = (("3", "High risk"), ("2", "Medium risk"), ("1", "Low risk"))
DIGEST: Final = re.compile(r"[0-9a-f]{6,64}")
LONGEST: Final = 100
_ALL: Final = 10**9


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter that is chosen from a few: each option's value, its word, and whether it is chosen."""

    name: str
    label: str
    options: tuple[tuple[str, str, bool], ...]


class QueueFilter(django_filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Words, workflow, operation and risk; and in which order the list stands."""

    q = django_filters.CharFilter(
        method="find",
        label="Find in the queue",
        widget=forms.TextInput(
            attrs={
                "type": "search",
                "class": "grow",
                "placeholder": "Order, words, digest",
                "maxlength": LONGEST,
            }
        ),
    )
    workflow = django_filters.CharFilter(label="Workflow", widget=forms.Select())
    operation = django_filters.CharFilter(label="Operation", widget=forms.Select())
    risk = django_filters.ChoiceFilter(label="Risk", choices=RISKS, empty_label="Any risk")
    alike = django_filters.CharFilter(field_name="shape", label="Alike", widget=forms.HiddenInput())

    class Meta:
        model = Proposal
        fields: ClassVar[list[str]] = []

    def __init__(self, data: QueryDict, *, queryset: QuerySet[Proposal], tenant_id: UUID) -> None:
        """Over ``queryset``, which holds of one tenant what waits."""
        super().__init__(data, queryset=queryset)
        self.tenant_id = tenant_id

    def find(self, queryset: QuerySet[Proposal], name: str, value: str) -> QuerySet[Proposal]:
        """Rows whose sentence or target holds the words as they stand, or whose digest begins so."""
        return queryset.filter(words(value))

    def _named(self, text: str) -> Q:
        """As a question of its own, which an index alone answers: it holds the words. No row is read for them.

        The limit is none: without one, PostgreSQL makes one question of both, which no index answers.
        """
        pending = Proposal.objects.filter(tenant_id=self.tenant_id, status=ProposalStatus.PENDING)
        return Q(pk__in=pending.filter(words(text)).values("pk")[:_ALL])

    def offer(self, workflows: Iterable[str], operations: Iterable[str]) -> None:
        """What there is to choose, and what is chosen even where nothing of it waits any more."""
        for name, found, none in (
            ("workflow", workflows, "Any workflow"), ("operation", operations, "Any operation"),
        ):  # fmt: skip
            chosen = self.asked(name)
            names = sorted({*found, chosen} - {""})
            self.form.fields[name].widget.choices = [("", none), *((one, visible(one)) for one in names)]

    def asked(self, name: str) -> str:
        """What the address says, as far as it can be understood."""
        if not self.form.is_bound:
            return ""
        self.form.errors  # noqa: B018 - cleans; what is wrong in one field says nothing of the others
        return str(self.form.cleaned_data.get(name) or "")

    def searched(self, waiting: QuerySet[Proposal]) -> QuerySet[Proposal]:
        """Narrowed by words and likeness alone: what the counters are counted of."""
        found = waiting.filter(self._named(self.asked("q"))) if self.asked("q") else waiting
        return found.filter(shape=self.asked("alike")) if self.asked("alike") else found

    def fits(self, facet: dict[str, Any]) -> bool:
        """Whether a group of rows with this workflow, operation and risk is in the filtered list."""
        return all(self.asked(name) in ("", str(facet[name])) for name in ("workflow", "operation", "risk"))

    @property
    def is_active(self) -> bool:
        """Whether anything is asked for that narrows the list."""
        return any(self.asked(name) for name in self.filters)

    @property
    def kind(self) -> str:
        """The shape of which the list holds all that is alike."""
        return self.asked("alike")

    @property
    def choices(self) -> list[Choice]:
        """The folded filters."""
        return [self._choice(name) for name in ("workflow", "operation", "risk")]

    def _choice(self, name: str) -> Choice:
        field, chosen = self.form.fields[name], self.asked(name)
        options = tuple((str(value), word, str(value) == chosen) for value, word in field.widget.choices)
        return Choice(name, str(field.label), options)

    @property
    def is_searched(self) -> bool:
        """Whether the counters are counted of less than all that waits."""
        return bool(self.asked("q") or self.asked("alike"))

    @property
    def narrows(self) -> int:
        """How many of the folded filters narrow the list."""
        return sum(bool(self.asked(name)) for name in ("workflow", "operation", "risk"))


def words(text: str) -> Case:
    """Rows that these words name: half of them, as far as the planner knows.

    Behind row-level security it has no opinion of its own about words, expects next to nothing, and would read and sort
    all that waits for a page of what is found everywhere.
    """
    return Case(When(_named_by(text), then=True), default=False, output_field=BooleanField())


def _named_by(text: str) -> Q:
    text = text.strip()[:LONGEST]
    digest = re.sub(r"[\s:]|sha256", "", text.lower())
    found = Q(summary__icontains=text) | Q(target__icontains=text)
    return found | Q(digest__startswith=digest) if DIGEST.fullmatch(digest) else found
