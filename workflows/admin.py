"""Rows of this app in Django's admin, to look at."""

from common.admin import show
from workflows.models import Attempt, Command, Definition, Document, Lookup, Run, SourceEvent, Step

show(Attempt, Command, Definition, Document, Lookup, Run, SourceEvent, Step)
