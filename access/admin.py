"""Rows of this app in Django's admin, to look at."""

from access.models import Agent, ApiToken, Group, Membership, User
from common.admin import show

show(Agent, ApiToken, Group, Membership, User)
