"""Destinations, and what was given up, as rows of tables: formatting only."""

from access.tables import Listing, cell, plain
from common.display import visible
from notify.models import Destination, Dispatch


class DestinationTable(Listing):
    says = "Destinations, by name"
    name = cell("notify/columns/name.html", "Destination")
    state = cell("notify/columns/state.html", "State")
    host = plain("Host")
    group = plain("Hears what concerns")
    last = cell("notify/columns/last.html", "Last delivered")
    waiting = plain("Waiting")
    dead = plain("Given up")

    def render_host(self, record: Destination) -> str:
        return visible(record.host)

    def render_group(self, record: Destination) -> str:
        return visible(record.group.name) if record.group else "everybody"

    def render_waiting(self, record: Destination) -> str:
        return str(record.waiting)  # type: ignore[attr-defined]

    def render_dead(self, record: Destination) -> str:
        return str(record.dead)  # type: ignore[attr-defined]


class FailureTable(Listing):
    says = "What was given up, the newest first"
    told = cell("notify/columns/told.html", "What")
    to = cell("notify/columns/to.html", "To")
    problem = cell("notify/columns/problem.html", "Reason")
    tries = plain("Tries")
    at = cell("notify/columns/ended.html", "Given up")
    again = cell("notify/columns/again.html", "")

    def render_tries(self, record: Dispatch) -> str:
        return str(record.tries)
