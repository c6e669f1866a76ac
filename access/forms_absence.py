"""Forms of absences and working hours. They read clocks of walls in a zone, and decide nothing."""

import re
from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from django import forms

from access.enums import Role
from access.forms_people import groups_of
from access.hours import DAYS, MIDNIGHT, Day, instant_of, zone_names
from access.models import Group, Membership, WorkingHours
from common.display import visible

_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)|24:00")
MOST_DAYS_TYPED: Final = 8000
"""Characters: four hundred dates and the blanks between them."""


class LocalMoment(forms.CharField):
    """A day and a time as a clock on a wall shows them; the zone is another field's."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"})

    def __init__(self, label: str, help_text: str = "") -> None:
        errors = {"required": "Say a day and a time."}
        super().__init__(label=label, help_text=help_text, max_length=40, error_messages=errors)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise forms.ValidationError("Say a day and a time, such as 2026-12-04 09:00.") from None
        if moment.tzinfo is not None:
            raise forms.ValidationError("Say it without a zone: the zone has a field of its own.")
        return moment


def zone_field() -> forms.ChoiceField:
    return forms.ChoiceField(
        label="Time zone", choices=[(name, name) for name in zone_names()],
        error_messages={"invalid_choice": "There is no such time zone."},
    )  # fmt: skip


class NewAbsence(forms.Form):
    """From when to when somebody is away, and who decides in their stead."""

    starts = LocalMoment("Away from")
    ends = LocalMoment("Until", "From this time on they are there again.")
    zone = zone_field()
    deputy = forms.ModelChoiceField(
        label="Decides in their stead", queryset=Membership.objects.none(), required=False, empty_label="Nobody",
        help_text="A reviewer. They get the groups for that time, and no other right.",
    )  # fmt: skip
    group = forms.ModelChoiceField(
        label="For", queryset=Group.objects.none(), required=False, empty_label="All their groups"
    )

    def __init__(self, *args: Any, membership: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = Membership.objects.filter(
            tenant_id=membership.tenant_id,
            is_active=True,
            user__is_active=True,
            roles__contains=[Role.REVIEWER],
        )
        fields: Any = self.fields
        fields["deputy"].queryset = (
            others.exclude(user_id__in=membership.accounts)
            .select_related("user")
            .order_by("user__username", "id")
        )
        fields["deputy"].label_from_instance = lambda row: visible(f"{row.user} ({row.user.username})")
        fields["group"].queryset = membership.groups.order_by("name", "id")
        fields["group"].label_from_instance = lambda row: visible(row.name)

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        for name in ("starts", "ends"):
            if name in said and "zone" in said:
                instant = instant_of(said[name], ZoneInfo(said["zone"]))
                if instant is None:
                    self.add_error(name, "The clock skips this time on that day in this zone.")
                said[name] = instant
        return said


class WeekForm(forms.Form):
    """The hours of a week: from and until of each day, both empty on a day off, and days on which nobody works."""

    zone = zone_field()
    holidays = forms.CharField(
        label="Days off beside", required=False, max_length=MOST_DAYS_TYPED, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One date a line, such as 2026-12-25.",
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for number, day in enumerate(DAYS):
            for end, word in (("from", "from"), ("until", "until")):
                self.fields[f"{end}_{number}"] = forms.CharField(
                    label=f"{day} {word}", required=False, max_length=5,
                    widget=forms.TextInput(attrs={"inputmode": "numeric", "placeholder": "closed", "size": 5}),
                )  # fmt: skip

    @property
    def days(self) -> list[tuple[str, Any, Any]]:
        """Name, from, until: for a table."""
        return [(day, self[f"from_{number}"], self[f"until_{number}"]) for number, day in enumerate(DAYS)]

    def clean_holidays(self) -> list[date]:
        found = []
        for line in self.cleaned_data["holidays"].split():
            try:
                found.append(date.fromisoformat(line))
            except ValueError:
                raise forms.ValidationError(f"{visible(line)} is no date such as 2026-12-25.") from None
        return found

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        said["week"] = [self._day(number) for number in range(len(DAYS))]
        return said

    def _day(self, number: int) -> Day:
        names = f"from_{number}", f"until_{number}"
        texts = [str(self.cleaned_data.get(name, "")).strip() for name in names]
        if not any(texts):
            return None
        times = [minutes_of(text) for text in texts]
        for name, minutes in zip(names, times, strict=True):
            if minutes is None:
                self.add_error(name, "A time such as 09:00.")
        opens, closes = times
        if opens is None or closes is None:
            return None
        if opens >= closes:
            self.add_error(names[1], "It ends after it begins; midnight is 24:00.")
        return opens, closes


def minutes_of(text: str) -> int | None:
    """Minutes of the day of ``9:00`` or ``24:00``; None for anything else."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    return MIDNIGHT if found[1] is None else int(found[1]) * 60 + int(found[2])


def initial_week(row: WorkingHours | None) -> dict[str, Any]:
    """What is stored, as the form shows it; an ordinary week where nothing is."""
    if row is None:
        week: list[Any] = [[9 * 60, 17 * 60]] * 5 + [None, None]
        return {"zone": "UTC"} | _texts(week)
    days = "\n".join(day.isoformat() for day in row.holidays)
    return {"zone": row.zone, "holidays": days} | _texts(row.week)


def _texts(week: list[Any]) -> dict[str, str]:
    return {
        f"{end}_{number}": f"{minutes // 60:02d}:{minutes % 60:02d}"
        for number, day in enumerate(week) if day
        for end, minutes in zip(("from", "until"), day, strict=True)
    }  # fmt: skip


class WhoseHours(forms.Form):
    """Whose week: a group's, or the whole organisation's."""

    group = forms.ModelChoiceField(queryset=Group.objects.none(), required=False)

    def __init__(self, *args: Any, membership: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["group"].queryset = groups_of(membership.tenant_id)  # type: ignore[attr-defined]
