"""Endpoints as rows of a table: formatting only."""

from access.tables import Listing, cell, plain
from common.display import visible
from workflows.models import Endpoint


class EndpointTable(Listing):
    says = "Endpoints, by name"
    name = cell("workflows/endpoints/columns/name.html", "Endpoint")
    state = cell("workflows/endpoints/columns/state.html", "State")
    workflow = plain("Starts")
    agent = plain("Automation")
    last = cell("workflows/endpoints/columns/last.html", "Last delivery")
    waiting = plain("Waiting")
    quarantined = plain("Quarantined")

    def render_workflow(self, record: Endpoint) -> str:
        return f"{record.workflow}, from {visible(record.source_system)}"

    def render_agent(self, record: Endpoint) -> str:
        return visible(record.agent.name)

    def render_waiting(self, record: Endpoint) -> str:
        return str(record.waiting)  # type: ignore[attr-defined]

    def render_quarantined(self, record: Endpoint) -> str:
        return str(record.quarantined)  # type: ignore[attr-defined]
