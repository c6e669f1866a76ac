"""Rows of people: accounts, groups, automations with their tokens, duties and postures, and when people are there."""

from access.models.absences import Absence
from access.models.hours import WorkingHours
from access.models.people import (
    Agent,
    ApiToken,
    BreakGlass,
    Duty,
    Group,
    GroupMembership,
    Membership,
    User,
)

__all__ = [
    "Absence",
    "Agent",
    "ApiToken",
    "BreakGlass",
    "Duty",
    "Group",
    "GroupMembership",
    "Membership",
    "User",
    "WorkingHours",
]
