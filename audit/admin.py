"""Rows of this app in Django's admin, to look at."""

from audit.models import Event, Head, Seal
from common.admin import show

show(Event, Head, Seal)
