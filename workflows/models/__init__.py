"""Rows of durable runs (left of the command) and of execution (right of it)."""

from workflows.models.commands import Attempt, Command, Lookup
from workflows.models.runs import Definition, Document, Run, SourceEvent, Step

__all__ = ["Attempt", "Command", "Definition", "Document", "Lookup", "Run", "SourceEvent", "Step"]
