"""Who is away, who decides in their stead, and what can never be said about it."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from access import actions, actions_absence, actions_people
from access.actions_absence import (
    AbsenceTimes,
    DeputyAway,
    DeputyChain,
    DeputyCircle,
    DeputyUnfit,
    NoSuchPlace,
    UnknownZone,
    end_absence,
    note_absence,
)
from access.enums import Role
from access.models import Absence, Group, User
from access.policies import NotAMember, RoleMissing
from access.selectors import standings
from audit.actors import Actor, Owner, Via
from audit.models import Event
from common.clock import db_clock
from common.models import Tenant
from tests import factories
from tests.access.people import INSTALLER
from tests.walls import refused_by
from tests.workflows.together import in_threads

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def in_session(user: User) -> Actor:
    return Actor(performed_by=f"user:{user.pk}", via=Via.SESSION, owner=Owner.PERSON, user_id=user.pk)


class Office:
    """Ada and Ben review for the desk, Cid for another group, Dan for none, Eve is no reviewer."""

    def __init__(self) -> None:
        self.tenant: Tenant = factories.make_tenant("harbour")
        self.desk: Group = factories.make_group(self.tenant, "Desk")
        self.other: Group = factories.make_group(self.tenant, "Other")
        self.ada = factories.make_user(self.tenant, "ada", groups=[self.desk, self.other])
        self.ben = factories.make_user(self.tenant, "ben", groups=[self.desk])
        self.cid = factories.make_user(self.tenant, "cid", groups=[self.other])
        self.dan = factories.make_user(self.tenant, "dan")
        self.eve = factories.make_user(self.tenant, "eve", roles=[Role.AUDITOR])
        self.now = db_clock()

    def away(
        self, user: User, deputy: User | None = None, start: float = -1, end: float = 1, **more: Any
    ) -> Absence:
        """From and until in hours from now."""
        values: dict[str, Any] = {
            "starts_at": self.now + start * HOUR, "ends_at": self.now + end * HOUR, "zone": "Europe/Berlin",
            "by": in_session(user), "clock": db_clock,
        }  # fmt: skip
        return note_absence(tenant=self.tenant, user=user, deputy=deputy, **(values | more))

    def steads(self, user: User) -> dict[Any, frozenset[Any]]:
        found = standings(self.tenant.pk, [user.pk])[user.pk].steads
        return {stead.user_id: stead.group_ids for stead in found}


@pytest.fixture
def office() -> Office:
    return Office()


def test_a_deputy_has_the_places_while_it_lasts_and_not_before_or_after(office: Office) -> None:
    office.away(office.ada, office.dan)
    assert office.steads(office.dan) == {office.ada.pk: frozenset({office.desk.pk, office.other.pk})}
    assert office.steads(office.ada) == {}
    office.away(office.ben, office.dan, start=1, end=2)
    assert set(office.steads(office.dan)) == {office.ada.pk}


def test_it_is_half_open(office: Office) -> None:
    """From the first instant on, and at the last no more: the next one begins there."""
    office.away(office.ada, office.ben, start=-1, end=1)
    assert office.away(office.ada, office.cid, start=1, end=2).starts_at == office.now + HOUR
    # From the instant on at which Ben no longer decides for her, he may have a deputy.
    office.away(office.ben, office.dan, start=1, end=2)


def test_one_group_may_be_handed_over_alone(office: Office) -> None:
    office.away(office.ada, office.dan, group=office.desk)
    assert office.steads(office.dan) == {office.ada.pk: frozenset({office.desk.pk})}


def test_taking_it_back_ends_it_at_once_and_once(office: Office) -> None:
    absence = office.away(office.ada, office.dan)
    ended = end_absence(
        tenant=office.tenant, absence_id=absence.pk, by=in_session(office.ada), clock=db_clock
    )
    again = end_absence(
        tenant=office.tenant, absence_id=absence.pk, by=in_session(office.ada), clock=db_clock
    )
    assert (ended, again, office.steads(office.dan)) == (True, False, {})
    told = Event.objects.filter(kind__startswith="absence.").order_by("id")
    assert sorted(event.kind for event in told) == ["absence.ended", "absence.noted"]
    assert all(str(event.subject_id) == str(office.ada.pk) for event in told)
    assert {event.body["deputy"] for event in told} == {str(office.dan.pk)}


def test_a_delegator_who_lost_role_or_account_hands_over_nothing(office: Office) -> None:
    office.away(office.ada, office.dan)
    actions.set_roles(
        tenant=office.tenant, user=office.ada, roles=[Role.OPERATOR], by=INSTALLER, clock=db_clock
    )
    assert office.steads(office.dan) == {}
    actions.set_roles(
        tenant=office.tenant, user=office.ada, roles=[Role.REVIEWER], by=INSTALLER, clock=db_clock
    )
    assert set(office.steads(office.dan)) == {office.ada.pk}
    actions.deactivate_membership(tenant=office.tenant, user=office.ada, by=INSTALLER, clock=db_clock)
    assert office.steads(office.dan) == {}


def test_no_circle(office: Office) -> None:
    office.away(office.ada, office.ben)
    with pytest.raises(DeputyCircle):
        office.away(office.ben, office.ada, start=0.5, end=3)
    office.away(office.ben, office.ada, start=1, end=3)


@pytest.mark.parametrize("first", [True, False])
def test_no_chain_from_either_end(office: Office, first: bool) -> None:
    if first:
        office.away(office.ada, office.ben)
        with pytest.raises(DeputyChain):
            office.away(office.ben, office.dan)  # ben holds ada's places
    else:
        office.away(office.ben, office.dan)
        with pytest.raises(DeputyChain):
            office.away(office.ada, office.ben)  # ben has a deputy
    assert Absence.objects.count() == 1


def test_a_chain_is_one_of_people_not_of_accounts(office: Office) -> None:
    second = factories.make_user(office.tenant, "ben-2", groups=[office.desk])
    actions_people.link_accounts(
        tenant=office.tenant, user=office.ben, other=second, by=INSTALLER, clock=db_clock
    )
    with pytest.raises(DeputyUnfit):
        office.away(office.ben, second)
    office.away(office.ada, office.ben)
    with pytest.raises(DeputyCircle):
        office.away(second, office.ada)


def test_the_database_refuses_circles_and_chains_by_itself(office: Office) -> None:
    fields: dict[str, Any] = {
        "tenant": office.tenant, "zone": "UTC", "created_at": office.now, "created_by": "test",
        "starts_at": office.now, "ends_at": office.now + HOUR,
    }  # fmt: skip
    Absence.objects.create(user=office.ada, deputy=office.ben, **fields)
    for user, deputy in ((office.ben, office.ada), (office.ben, office.dan), (office.cid, office.ada)):
        with refused_by("access_absence_no_chains"):
            Absence.objects.create(user=user, deputy=deputy, **fields)
    with refused_by("access_absence_said"):
        Absence.objects.update(deputy=office.dan)
    with refused_by("access_absence_no_chains"):
        Absence.objects.create(user=office.ada, deputy=office.ada, **fields)
    with refused_by("access_absence_has_a_length"):
        Absence.objects.create(user=office.dan, **(fields | {"ends_at": office.now}))
    with refused_by("access_absence_group_of_a_deputy"):
        Absence.objects.create(user=office.dan, group=office.desk, **fields)
    with refused_by("access_absence_group_tenant"):
        stranger = factories.make_group(factories.make_tenant())
        Absence.objects.create(user=office.cid, deputy=office.dan, group=stranger, **fields)


def test_who_is_away_is_nobodys_deputy_and_falls_ill_all_the_same(office: Office) -> None:
    office.away(office.ben)
    with pytest.raises(DeputyAway):
        office.away(office.ada, office.ben)
    office.away(office.ada, office.dan)
    office.away(office.dan)  # the deputy is ill now: it can be said


def test_whom_nobody_can_name(office: Office) -> None:
    stranger = factories.make_user(factories.make_tenant(), "stranger")
    for unfit in (office.eve, stranger, office.ada):
        with pytest.raises(DeputyUnfit):
            office.away(office.ada, unfit)
    with pytest.raises(NoSuchPlace):
        office.away(office.ben, office.dan, group=office.other)
    with pytest.raises(NoSuchPlace):
        office.away(office.dan, office.ben)


def test_times_and_zones(office: Office) -> None:
    for start, end in ((1, 1), (2, 1), (-3, -2), (0, 24 * 370)):
        with pytest.raises(AbsenceTimes):
            office.away(office.ada, start=start, end=end)
    with pytest.raises(UnknownZone):
        office.away(office.ada, zone="../etc/passwd")


def test_for_oneself_or_as_an_admin_and_never_with_a_token(office: Office) -> None:
    with pytest.raises(RoleMissing):
        office.away(office.ada, by=in_session(office.ben))
    token = Actor(performed_by="api:x", via=Via.TOKEN, owner=Owner.AUTOMATION, user_id=office.ada.pk)
    with pytest.raises(RoleMissing):
        office.away(office.ada, by=token)
    admin = factories.make_user(office.tenant, "adam", roles=[Role.ADMIN])
    absence = office.away(office.ada, office.dan, by=in_session(admin))
    event = Event.objects.get(kind="absence.noted")
    assert (event.body["own"], event.performed_by) == (False, f"user:{admin.pk}")
    with pytest.raises(RoleMissing):
        end_absence(tenant=office.tenant, absence_id=absence.pk, by=in_session(office.ben), clock=db_clock)
    actions.deactivate_membership(tenant=office.tenant, user=office.ada, by=INSTALLER, clock=db_clock)
    with pytest.raises(NotAMember):
        office.away(office.ada)


def test_the_lock_is_taken_before_anything_is_looked_at(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules are asked again by the database: an action that did not see the other one is refused by it."""
    office.away(office.ada, office.ben)
    monkeypatch.setattr(actions_absence, "_check_deputy", lambda *_: None)
    with pytest.raises(DeputyChain):
        office.away(office.ben, office.ada)


def test_the_clock_is_the_actions_own(office: Office) -> None:
    later: datetime = office.now + timedelta(days=2)
    with pytest.raises(AbsenceTimes):
        office.away(office.ada, clock=lambda: later)


@pytest.mark.parametrize("by_sql", [False, True])
def test_of_two_that_would_make_a_circle_in_the_same_instant_one_is_refused(
    office: Office, by_sql: bool
) -> None:
    """Also where nothing but the database looks: the trigger waits for the other one's commit, and sees it."""
    pairs = [(office.ada, office.ben), (office.ben, office.ada)]
    fields: dict[str, Any] = {
        "tenant": office.tenant, "zone": "UTC", "created_at": office.now, "created_by": "test",
        "starts_at": office.now, "ends_at": office.now + HOUR,
    }  # fmt: skip

    def note(number: int) -> Any:
        user, deputy = pairs[number % 2]
        if by_sql:
            return Absence.objects.create(user=user, deputy=deputy, **fields)
        return office.away(user, deputy)

    results = in_threads(2, note)
    refused = [result for result in results if isinstance(result, Exception)]
    assert (len(refused), Absence.objects.count()) == (1, 1)
    assert isinstance(refused[0], DatabaseError if by_sql else DeputyCircle)
