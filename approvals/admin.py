"""Rows of this app in Django's admin, to look at."""

from approvals.models import Decision, Evidence, Proposal
from common.admin import show

show(Decision, Evidence, Proposal)
