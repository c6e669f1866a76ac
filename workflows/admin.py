"""Rows of this app in Django's admin, to look at."""

from common.admin import show
from workflows.models import (
    Attempt,
    CallbackCall,
    CallbackEndpoint,
    Command,
    Definition,
    Delivery,
    Document,
    Endpoint,
    Lookup,
    Run,
    SourceEvent,
    Step,
)

show(Attempt, CallbackCall, CallbackEndpoint, Command, Definition, Delivery, Document, Endpoint)
show(Lookup, Run, SourceEvent, Step)
