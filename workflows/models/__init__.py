"""Rows of durable runs (left of the command) and of execution (right of it)."""

from workflows.models.attempts import Attempt, Lookup
from workflows.models.attestations import Attestation
from workflows.models.callbacks import CallbackCall, CallbackEndpoint, CallbackSecret
from workflows.models.commands import Command
from workflows.models.endpoints import Delivery, Endpoint, EndpointSecret
from workflows.models.holds import Hold
from workflows.models.legal_holds import LegalHold
from workflows.models.replays import Replay
from workflows.models.runs import Definition, Document, Run, SourceEvent, Step

__all__ = [
    "Attempt", "Attestation", "CallbackCall", "CallbackEndpoint", "CallbackSecret", "Command", "Definition", "Delivery",
    "Document", "Endpoint", "EndpointSecret", "Hold", "LegalHold", "Lookup", "Replay", "Run", "SourceEvent", "Step",
]  # fmt: skip
