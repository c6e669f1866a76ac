"""A page of a list costs the same number of queries however many lines it has."""

from collections.abc import Callable

import pytest

from tests.api.callers import as_json
from tests.api.conftest import World
from tests.database import captured_queries, statements

pytestmark = pytest.mark.django_db


def queries(do: Callable[[], object]) -> int:
    with captured_queries() as seen:
        do()
    return len(statements(seen))


@pytest.mark.parametrize("path", ["/runs", "/proposals"])
def test_a_page_costs_the_same_however_long_it_is(world: World, path: str) -> None:
    world.decide(world.proposed("k-1"))
    short = queries(lambda: as_json(world.agent.get(path)))
    for number in range(2, 6):
        proposal = world.proposed(
            f"k-{number}", arguments={"order": str(number), "amount": "9.00", "currency": "EUR"}
        )
        world.decide(proposal)
    rows = as_json(world.agent.get(path))
    assert len(next(iter(rows.values()))) == 5
    assert queries(lambda: as_json(world.agent.get(path))) == short
