"""The queue as a table: formatting only. Its rows are shaped by `approvals.screens.queue_rows`."""

import django_tables2 as tables

from access.tables import Listing


class QueueTable(Listing):
    """Proposals under one heading of the queue. A row is a card: it has to fit beside an open proposal."""

    says = "Waiting proposals"
    decide_by = tables.Column("Time left")
    summary = tables.Column("Proposal")
    amount = tables.Column("Amount", empty_values=())
    risk_word = tables.Column("Risk")
    operation = tables.Column("Operation")
    workflow = tables.Column("Workflow")
    age = tables.Column("Age")

    class Meta(Listing.Meta):
        template_name = "approvals/includes/queue_rows.html"
