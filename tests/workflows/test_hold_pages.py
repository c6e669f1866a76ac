"""The pages of the kill switch: who sees and does what, what they say, and that what they prove is so."""

import re
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from access.enums import Role
from audit.actions import record
from audit.models import Event
from audit.sealer import seal
from common.clock import db_clock
from common.ids import new_id
from tests import factories
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, as_superuser, fresh
from tests.workflows.test_circuit import in_trouble, tend
from tests.workflows.test_freezing import (
    OTHER_SCOPES,
    SCOPES,
    frozen,
    hold_back,
    register_version,
    release,
    unfreeze,
)
from tests.workflows.toy import NOTHING_CAME
from workflows.models import Command, Hold
from workflows.scope import matches
from workflows.selectors_holds import commands_within

pytestmark = pytest.mark.django_db
LIST = "/runs/freezes/"
FREEZE = {"scope": "tenant", "why": "the payments look wrong", "decision": "freeze"}
HTMX = {"HX-Request": "true"}
HOSTILE = "<script>alert(1)</script> \u202e{{ 7 }}"


@pytest.fixture
def operator(desk: Desk, client: Client) -> Client:
    client.force_login(
        factories.make_user(desk.tenant, "omar", roles=[Role.OPERATOR], display_name="Omar T.")
    )
    return client


def page(client: Client, address: str, status: int = 200, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == status
    return answer.content.decode()


def here(hold: Hold) -> str:
    return f"{LIST}{hold.pk}/"


def lost(desk: Desk, order: str) -> Command:
    """A command that was sent, and of which nobody knows what came."""
    command = desk.approved(order=order)
    desk.till.answers.append(NOTHING_CAME)
    desk.work(limit=1)
    assert fresh(command).status == "unknown"
    return command


def words(html: str) -> str:
    """The text of a page, without marks and in single spaces."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


# -- one freeze -----------------------------------------------------------------------------------------------


def test_the_page_tells_who_why_since_when_and_what_it_holds(operator: Client, desk: Desk) -> None:
    command = desk.approved(order="1042")
    operator.post(LIST, FREEZE)
    hold = Hold.objects.get()
    hold_back()
    html = page(operator, here(hold))
    text = words(html)
    assert "Freeze: everything of this organisation" in text
    assert "“ the payments look wrong ”" in text
    assert "Omar T." in text
    assert "from this instant on nothing was newly sent" in text
    assert "1 action is held by it now." in text
    assert f'href="/runs/{command.run_id}/"' in html
    assert "Held still, by this or by something else since 1" in text
    assert html.count(f'datetime="{hold.drained_at:%Y-%m-%dT%H:%M:%SZ}"') >= 1


def test_what_was_in_flight_is_shown_as_it_was_then_and_is_now(operator: Client, desk: Desk) -> None:
    command = lost(desk, "7")
    hold = frozen(desk)
    in_flight = words(page(operator, here(hold)).partition('id="flight-title"')[2])
    assert "0 sent, 1 unknown; 0 of the listed are settled by now" in in_flight
    assert "order:7" in in_flight
    as_superuser("UPDATE workflows_command SET status = 'confirmed', effect = 'happened', settled_by = 'lookup',"
                 " due_at = NULL, ended_at = now() WHERE id = %s", command.pk)  # fmt: skip
    later = words(page(operator, here(hold)).partition('id="flight-title"')[2])
    assert "1 of the listed is settled by now" in later
    assert "Unknown Confirmed" in later


def test_the_proof_counts_what_was_sent_after_the_drain_and_says_how_far_it_is_sealed(
    operator: Client, desk: Desk
) -> None:
    desk.approved(order="before")
    desk.work()
    desk.approved(order="after")
    hold = frozen(desk)
    desk.work()
    seal(db_clock)
    text = words(page(operator, here(hold)))
    assert "0 newly sent between the drain and now" in text
    sealed = Event.objects.filter(tenant_id=desk.tenant.pk).count()
    assert f"numbered and chained up to event {sealed:,}" in text
    assert re.search(r"the drain is event \d+\.", text)
    assert re.search(r"All \d+ links since the drain were recomputed just now, and hold\.", text)
    unfreeze(hold)
    while release():
        pass
    desk.work()
    seal(db_clock)
    text = words(page(operator, here(hold)))
    assert "0 newly sent between the drain and the lift" in text
    assert re.search(r"the drain is event \d+, the lift is event \d+\.", text)


@pytest.mark.parametrize(("order", "count"), [("1042", 1), ("7", 0)])
def test_the_proof_would_show_what_was_sent_within_the_scope_and_nothing_else(
    operator: Client, desk: Desk, order: str, count: int
) -> None:
    """The history is believed over every other table: here it tells of something that must not be."""
    command = desk.approved(order=order)
    hold = frozen(desk, target="order:1042")
    with transaction.atomic():
        record(
            by=SWEEP, kind="command.sent", tenant_id=desk.tenant.pk, subject_type="command", subject_id=command.pk,
            run_id=command.run_id,
        )  # fmt: skip
    html = page(operator, here(hold))
    assert f"{count} newly sent between the drain and now" in html
    assert ('class="proof" data-tone="bad"' in html) is bool(count)


def test_a_history_that_was_changed_proves_nothing(operator: Client, desk: Desk) -> None:
    hold = frozen(desk)
    seal(db_clock)
    as_superuser("UPDATE audit_event SET reason = 'changed' WHERE kind = 'hold.drained'")
    html = page(operator, here(hold))
    assert "The history does not hold, so it proves nothing" in html
    assert 'class="proof" data-tone="bad"' in html


def test_a_freeze_that_is_not_drained_claims_nothing(operator: Client, desk: Desk) -> None:
    hold = Hold.objects.create(
        tenant=desk.tenant, reason="freeze", why="wait", placed_by="command_line:root", placed_at=db_clock()
    )
    text = words(page(operator, here(hold)))
    assert "Not drained yet" in text
    assert "newly sent between" not in text
    assert "It is noted at the instant of the drain." in text


@pytest.mark.parametrize("scope", [*SCOPES, *OTHER_SCOPES], ids=str)
def test_commands_are_within_a_scope_by_the_rule_of_the_kill_switch(
    desk: Desk, scope: dict[str, Any]
) -> None:
    commands = [desk.approved(order="1042"), desk.approved(order="7")]
    register_version(2)
    hold = frozen(desk, **scope)
    within = set(commands_within(hold, desk.tenant.pk).values_list("pk", flat=True))
    assert within == {command.pk for command in commands if matches(hold, command, command.proposal)}


# -- circuits -------------------------------------------------------------------------------------------------


def test_a_circuit_tells_of_its_next_trial_and_of_the_one_under_way(operator: Client, desk: Desk) -> None:
    in_trouble(desk, 5)
    waiting = desk.approved(order="next")
    hold_back()
    hold = Hold.objects.get()
    assert "Provider in trouble" in page(operator, LIST)
    html = page(operator, here(hold))
    assert "then one call is tried" in html
    assert "No promise, unlike a freeze" in html
    assert "Close the circuit" in html
    assert 'class="freeze"' not in html, "a circuit is no freeze"
    tend()
    html = page(operator, here(hold))
    assert f'<a href="/runs/{waiting.run_id}/">The run of the call on trial</a>' in html
    assert "One call is tried" in html


# -- the banner, and the ways there ---------------------------------------------------------------------------


def test_every_page_of_the_desks_says_that_something_is_frozen(operator: Client, desk: Desk) -> None:
    proposal = desk.proposed()
    pages = ("/review/", f"/review/{proposal.pk}/", "/runs/", f"/runs/{proposal.run_id}/", "/repair/", LIST)
    assert not [address for address in pages if 'class="freeze"' in page(operator, address)]
    narrow, wide = frozen(desk, operation="toy.pay"), frozen(desk)
    for address in pages:
        html = page(operator, address)
        text = words(html.partition('class="freeze"')[2].partition("</aside>")[0])
        assert "Frozen: Everything of this organisation , since" in text
        assert "<span>Frozen</span>" in html
        assert "by command line (root) : “ the payments look wrong ”. 1 more freeze beside it." in text
    unfreeze(wide)
    html = page(operator, "/runs/")
    assert "Frozen: <bdi>Operation toy.pay</bdi>" in html
    assert f'href="{here(narrow)}">See what it holds' in html
    assert "<span>Frozen in part</span>" in html
    unfreeze(narrow)
    assert 'class="freeze"' not in page(operator, "/runs/")


def test_the_banner_shortens_a_long_reason(operator: Client, desk: Desk) -> None:
    operator.post(LIST, FREEZE | {"why": "x" * 400})
    html = page(operator, "/runs/")
    assert "x" * 140 + "…" in html
    assert "x" * 141 not in html
    assert "x" * 400 in page(operator, here(Hold.objects.get()))


def test_a_proposal_under_a_freeze_says_that_it_will_be_held(desk: Desk, client: Client) -> None:
    proposal = desk.proposed(order="1042")
    client.force_login(desk.ada)
    frozen(desk, target="order:7")
    says = "You may decide; what is approved is held until the freeze is lifted."
    assert says not in page(client, f"/review/{proposal.pk}/")
    frozen(desk, target="order:1042")
    assert says in page(client, f"/review/{proposal.pk}/")
    assert says in page(client, f"/review/{proposal.pk}/", **HTMX, **{"HX-Target": "pane"})
    assert client.get(f"{LIST}over/{new_id()}/").status_code == 204
    stranger = factories.make_user(factories.make_tenant("quay"))
    client.force_login(stranger)
    assert client.get(f"{LIST}over/{proposal.pk}/").status_code == 204


def test_a_degraded_run_leads_to_what_holds_it(operator: Client, desk: Desk) -> None:
    command = desk.approved()
    hold = frozen(desk)
    assert f'href="{LIST}"' in page(operator, "/runs/")
    assert here(hold) not in page(operator, f"/runs/{command.run_id}/").partition("<main")[2]
    hold_back()
    html = page(operator, f"/runs/{command.run_id}/").partition("<main")[2]
    assert f'<a href="{here(hold)}">What holds it, since when, and why</a>' in html


# -- walls ----------------------------------------------------------------------------------------------------


def test_hostile_words_are_shown_as_text(operator: Client, desk: Desk) -> None:
    typed = FREEZE | {"scope": "target", "target": HOSTILE, "why": HOSTILE}
    confirm = operator.post(LIST, typed | {"decision": ""}).content.decode()
    operator.post(LIST, typed)
    hold = Hold.objects.get()
    assert (hold.target, hold.why) == (HOSTILE, HOSTILE)
    shown = [confirm, page(operator, LIST), page(operator, here(hold)), page(operator, "/repair/")]
    operator.post(f"{here(hold)}lift/", {"why": HOSTILE})
    release()
    shown += [page(operator, LIST), page(operator, here(hold))]
    for html in shown:
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert(1)" in html
        assert "⟦U+202E⟧" in html
        # In the hidden fields of the form it stands as it was typed.
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", html)


def test_looking_changes_nothing(operator: Client, desk: Desk) -> None:
    desk.approved()
    hold = frozen(desk)
    hold_back()

    def state() -> list[Any]:
        return [list(model.objects.order_by("pk").values()) for model in (Hold, Command, Event)]

    before = state()
    for address in (LIST, here(hold), f"{here(hold)}lift/", f"{LIST}over/{new_id()}/"):
        operator.get(address)
        operator.head(address)
    assert operator.post(here(hold)).status_code == 405
    assert operator.get(f"{here(hold)}ask-again/").status_code == 405
    assert state() == before


@pytest.mark.parametrize("count", [1, 3])
def test_the_pages_ask_the_database_equally_often_however_much_they_show(
    operator: Client, desk: Desk, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        lost(desk, f"lost-{number}")
    for number in range(count):
        desk.approved(order=str(number))
    holds = [frozen(desk, target=f"order:{number}") for number in range(10, 10 + count)]
    operator.post(LIST, FREEZE)
    hold = Hold.objects.get(target="")
    for old in holds:
        unfreeze(old)
        release()
    hold_back()
    seal(db_clock)
    with django_assert_num_queries(16):
        operator.get(LIST)
    with django_assert_num_queries(32):
        operator.get(here(hold))
    with django_assert_num_queries(7):
        operator.get(here(hold), headers=HTMX | {"HX-Target": "hold-now"})


def test_pages_of_what_was_held_before_and_of_what_is_held_reach_the_last(
    operator: Client, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.cursors.page.__kwdefaults__", {"cursor": "", "size": 2})
    runs = {str(desk.approved(order=str(number)).run_id) for number in range(5)}
    old = {str(frozen(desk, target=f"order:old-{number}").pk) for number in range(5)}
    for hold in Hold.objects.all():
        unfreeze(hold)
    release()
    hold = frozen(desk)
    hold_back()
    past = follow(operator, LIST, "past-title", rf'class="stretch" href="{LIST}([0-9a-f-]+)/"')
    assert (len(past), set(past)) == (5, old)
    held = follow(operator, here(hold), "held-title", r'class="stretch" href="/runs/([0-9a-f-]+)/"')
    assert (len(held), set(held)) == (5, runs)
    for address in (LIST, here(hold)):
        page(operator, f"{address}?cursor=nonsense")


def follow(client: Client, address: str, title: str, pattern: str) -> list[str]:
    found: list[str] = []
    while address:
        section = page(client, address).partition(f'id="{title}"')[2].partition("</section>")[0]
        found += re.findall(pattern, section)
        older = re.findall(r'href="([^"]+)" rel="next"', section)
        address = older[0].replace("&amp;", "&") if older else ""
    return found
