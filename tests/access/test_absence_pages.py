"""The pages of absences and of working hours, by plain forms: for oneself, as an admin, and for nobody else."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from access import actions
from access.enums import Role
from access.models import Absence, Membership, User, WorkingHours
from common.clock import db_clock
from tests.access import people
from tests.access.people import INSTALLER

pytestmark = pytest.mark.django_db
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}


class Office:
    def __init__(self) -> None:
        self.tenant = people.tenant()
        self.desk = actions.create_group(tenant=self.tenant, name="Refund desk", **BY)
        self.adam = people.person(self.tenant, "adam", Role.ADMIN)
        self.anna = people.person(self.tenant, "anna", Role.AUDITOR)
        self.rosa = people.person(self.tenant, "rosa", Role.REVIEWER)
        self.saul = people.person(self.tenant, "saul", Role.REVIEWER)
        actions.add_to_group(group=self.desk, user=self.rosa, **BY)

    def at(self, user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    def form(self, **changes: str) -> dict[str, str]:
        year = db_clock().year + 1
        deputy = str(Membership.objects.get(user=self.saul).pk)
        return {
            "starts": f"{year}-07-01T09:00", "ends": f"{year}-07-15T09:00", "zone": "Europe/Berlin", "deputy": deputy,
            "group": str(self.desk.pk),
        } | changes  # fmt: skip


@pytest.fixture
def office() -> Office:
    return Office()


def test_one_says_it_for_oneself_in_ones_own_zone(office: Office) -> None:
    client = office.at(office.rosa)
    answer = client.post("/account/absences/", office.form())
    assert (answer.status_code, answer["Location"]) == (302, "/account/absences/")
    absence = Absence.objects.get()
    year = db_clock().year + 1
    assert absence.starts_at == datetime(year, 7, 1, 7, tzinfo=UTC)  # summer time in Berlin
    assert (absence.user, absence.deputy, absence.group) == (office.rosa, office.saul, office.desk)
    page = client.get("/account/absences/").content.decode()
    assert f"Jul {year}, 09:00" in page
    assert "Europe/Berlin" in page
    assert "saul" in page
    assert "In somebody&#x27;s stead" not in page
    assert "rosa" in office.at(office.saul).get("/account/absences/").content.decode()
    answer = client.post("/account/absences/end/", {"absence": str(absence.pk)})
    assert answer["Location"] == "/account/absences/"
    absence.refresh_from_db()
    assert absence.ended_at is not None


@pytest.mark.parametrize(("changes", "words"), [
    ({"ends": "2020-01-01T00:00"}, "An absence ends after it begins"),
    ({"starts": "soon"}, "Say a day and a time, such as"),
    ({"starts": "2027-07-01T09:00+02:00"}, "Say it without a zone"),
    ({"starts": ""}, "Say a day and a time."),
    ({"zone": "Atlantis"}, "There is no such time zone."),
    ({"deputy": "not-an-id"}, "is not a valid UUID"),
    ({"group": "00000000-0000-0000-0000-000000000000"}, "not one of the available choices"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_words_and_what_was_typed_is_kept(
    office: Office, changes: dict[str, str], words: str
) -> None:
    form = office.form(**changes)
    answer = office.at(office.rosa).post("/account/absences/", form)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in page
    assert f'value="{form["ends"]}"' in page
    assert not Absence.objects.exists()


def test_a_time_that_the_clock_skips(office: Office) -> None:
    answer = office.at(office.rosa).post(
        "/account/absences/", office.form(starts="2027-03-28T02:30", ends="2027-04-01T00:00")
    )
    assert "The clock skips this time" in answer.content.decode()


def test_a_circle_is_refused_with_its_own_words(office: Office) -> None:
    actions.add_to_group(group=office.desk, user=office.saul, **BY)
    office.at(office.rosa).post("/account/absences/", office.form())
    rosa = str(Membership.objects.get(user=office.rosa).pk)
    answer = office.at(office.saul).post("/account/absences/", office.form(deputy=rosa))
    assert answer.status_code == 409
    assert "it would be a circle" in answer.content.decode()


def test_whoever_has_not_proved_it_lately_is_asked_first(office: Office, settings: Any) -> None:
    settings.PLACET_REAUTH_S = 0
    answer = office.at(office.rosa).post("/account/absences/", office.form())
    assert answer["Location"].startswith("/account/confirm/")
    assert not Absence.objects.exists()


def test_an_admin_says_it_for_whoever_fell_ill_and_auditors_read_it(office: Office) -> None:
    address = f"/people/{office.rosa.pk}/absences/"
    assert office.at(office.adam).post(f"{address}new/", office.form()).status_code == 302
    absence = Absence.objects.get()
    assert absence.created_by == f"user:{office.adam.pk}"
    page = office.at(office.anna).get(address).content.decode()
    assert "saul" in page
    assert "Take it back" not in page
    assert office.at(office.anna).post(f"{address}new/", office.form()).status_code == 403
    assert office.at(office.saul).get(address).status_code == 403
    stolen = office.at(office.saul).post("/account/absences/end/", {"absence": str(absence.pk)})
    assert stolen.status_code == 404
    office.at(office.adam).post(f"{address}end/", {"absence": str(absence.pk)})
    absence.refresh_from_db()
    assert absence.ended_by == f"user:{office.adam.pk}"


def week(**changes: str) -> dict[str, str]:
    days = {f"from_{day}": "08:30" for day in range(5)} | {f"until_{day}": "24:00" for day in range(5)}
    return {"zone": "Europe/Berlin", "holidays": "2026-12-25\n2026-12-26", "group": ""} | days | changes


def test_hours_of_all_and_of_a_group(office: Office) -> None:
    client = office.at(office.adam)
    assert "Always: no hours were said." in client.get("/people/hours/").content.decode()
    assert client.post("/people/hours/set/", week()).status_code == 302
    assert (
        client.post("/people/hours/set/", week(group=str(office.desk.pk), from_0="", until_0="")).status_code
        == 302
    )
    everybody, desk = WorkingHours.objects.order_by("group_id").reverse()
    kept = {row.group_id: row.week for row in (everybody, desk)}
    assert kept[None] == [[510, 1440]] * 5 + [None, None]
    assert kept[office.desk.pk] == [None] + [[510, 1440]] * 4 + [None, None]
    page = office.at(office.anna).get("/people/hours/").content.decode()
    assert "08:30–24:00" in page
    assert "2026-12-25, 2026-12-26" in page
    assert 'value="08:30"' in client.get("/people/hours/set/").content.decode()
    client.post("/people/hours/clear/", {"group": str(office.desk.pk)})
    assert WorkingHours.objects.get().group_id is None


@pytest.mark.parametrize(("changes", "words"), [
    ({"from_0": "9 o'clock"}, "A time such as 09:00."), ({"until_0": "08:00"}, "It ends after it begins"),
    ({"from_0": ""}, "A time such as 09:00."), ({"holidays": "Christmas"}, "Christmas is no date"),
    ({f"{end}_{day}": "" for day in range(5) for end in ("from", "until")}, "Each day of a week is a day off"),
])  # fmt: skip
def test_hours_that_are_none(office: Office, changes: dict[str, str], words: str) -> None:
    answer = office.at(office.adam).post("/people/hours/set/", week(**changes))
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not WorkingHours.objects.exists()


def test_hours_of_nobodys_group(office: Office) -> None:
    other = actions.create_group(tenant=people.tenant("south"), name="Theirs", **BY)
    for group in (str(other.pk), "nonsense"):
        assert office.at(office.adam).post("/people/hours/set/", week(group=group)).status_code == 404
