"""Rows of telling people: what is told, to whom, by which way, and what each of them wishes."""

from notify.models.destinations import Destination
from notify.models.dispatches import Dispatch
from notify.models.messages import Follower, Message, Notice
from notify.models.preferences import Preference

__all__ = ["Destination", "Dispatch", "Follower", "Message", "Notice", "Preference"]
