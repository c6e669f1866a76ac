"""Long-polls: the answer comes when something changes, waits are short and few, and no thread is eaten."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from access.models import Agent, ApiToken
from access.tokens import fingerprint
from common.clock import db_clock
from common.longpoll import LONGEST_S, Waiters, wait_until, waiters
from tests.api.callers import as_json, refused, run_body
from tests.api.conftest import World
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def waited(world: World, path: str, **query: Any) -> tuple[Any, float]:
    """The answer, and how long it took; for a thread of its own."""
    try:
        began = time.monotonic()
        return as_json(world.agent.get(path, **query)), time.monotonic() - began
    finally:
        connections.close_all()


def test_a_run_that_changes_answers_at_once(world: World) -> None:
    run = as_json(world.agent.post("/runs", run_body()), 201)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(waited, world, f"/runs/{run['run_id']}", wait=20, since=run["state_version"])
        time.sleep(0.5)
        assert not future.done()
        world.desk.advance()
        found, seconds = future.result(timeout=20)
    assert found["state_version"] > run["state_version"]
    assert seconds < 10


def test_a_proposal_that_is_decided_answers_at_once(world: World) -> None:
    proposal = world.proposed()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(waited, world, f"/proposals/{proposal['id']}", wait=20)
        time.sleep(0.5)
        assert not future.done()
        as_json(world.decide(proposal))
        found, seconds = future.result(timeout=20)
    assert (found["status"], seconds < 10) == ("approved", True)


@pytest.mark.parametrize("path", ["runs", "proposals"])
@pytest.mark.parametrize("end", ["revoked", "agent_stopped", "person_gone"])
def test_a_token_that_ends_while_it_waits_is_told_nothing(world: World, path: str, end: str) -> None:
    """Field report K12: what changed after the token's end is not for whoever holds it."""
    proposal = world.proposed()
    address = f"/runs/{proposal['run_id']}" if path == "runs" else f"/proposals/{proposal['id']}"
    token = ApiToken.objects.get(sha256=fingerprint(world.agent.headers["Authorization"].split()[1]))

    def poll() -> int:
        try:
            return int(world.agent.get(address, wait=20).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(poll)
        time.sleep(0.5)
        if end == "revoked":
            ApiToken.objects.filter(pk=token.pk).update(revoked_at=db_clock())
        elif end == "agent_stopped":
            Agent.objects.filter(pk=token.agent_id).update(is_active=False)
        else:
            person = make_user(token.tenant, "gone")
            person.memberships.update(is_active=False)
            Agent.objects.filter(pk=token.agent_id).update(acts_for=person)
        as_json(world.decide(proposal))
        assert future.result(timeout=25) == 401


def test_who_knows_an_older_state_does_not_wait(world: World) -> None:
    proposal = world.proposed()
    as_json(world.decide(proposal))
    found, seconds = waited(world, f"/proposals/{proposal['id']}", wait=20, since=proposal["state_version"])
    assert (found["status"], seconds < 5) == ("approved", True)


def test_without_a_change_the_answer_comes_when_the_wait_is_over(world: World) -> None:
    proposal = world.proposed()
    found, seconds = waited(world, f"/proposals/{proposal['id']}", wait=0.5, since=1)
    assert (found["status"], 0.5 <= seconds < 5) == ("pending", True)


def test_more_than_a_few_are_answered_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    proposal = world.proposed()
    monkeypatch.setattr(waiters, "present", waiters.most)
    _, seconds = waited(world, f"/proposals/{proposal['id']}", wait=20)
    assert seconds < 5


@pytest.mark.parametrize(
    "query", [{"wait": -1}, {"wait": "nan"}, {"wait": "inf"}, {"wait": "x"}, {"since": "x"}]
)
def test_a_wait_is_a_number_of_seconds(world: World, query: dict[str, Any]) -> None:
    run = as_json(world.agent.post("/runs", run_body()), 201)
    refused(world.agent.get(f"/runs/{run['run_id']}", **query), 422, "invalid")


def test_places_are_given_back() -> None:
    places = Waiters(1)
    wait_until(lambda: False, 0.05, places=places)
    assert places.present == 0
    assert places.enter()
    assert not places.enter()
    places.leave()
    assert places.enter()


def test_no_place_is_lost_to_an_error() -> None:
    places, calls = Waiters(1), iter([False])
    with pytest.raises(StopIteration):
        wait_until(lambda: next(calls), 5, places=places)
    assert places.present == 0


def test_nobody_waits_longer_than_half_a_minute() -> None:
    assert LONGEST_S == 30
