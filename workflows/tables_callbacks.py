"""Callbacks as rows of a table: formatting only."""

from access.tables import Listing, cell, plain
from common.display import visible
from workflows.models import CallbackEndpoint


class CallbackTable(Listing):
    says = "Callbacks, by name"
    name = cell("workflows/callbacks/columns/name.html", "Callback")
    state = cell("workflows/callbacks/columns/state.html", "State")
    url = plain("Address")
    last = cell("workflows/callbacks/columns/last.html", "Last delivered")
    waiting = plain("Waiting")
    dead = plain("Given up")

    def render_url(self, record: CallbackEndpoint) -> str:
        return visible(record.url)

    def render_waiting(self, record: CallbackEndpoint) -> str:
        return str(record.waiting)  # type: ignore[attr-defined]

    def render_dead(self, record: CallbackEndpoint) -> str:
        return str(record.dead)  # type: ignore[attr-defined]
