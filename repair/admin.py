"""Rows of this app in Django's admin, to look at."""

from common.admin import show
from repair.models import RepairCause, RepairMove, RepairPacket
from repair.models_alerts import StopAlert
from repair.models_incidents import Incident, IncidentNote, IncidentRun

show(RepairPacket, RepairCause, RepairMove, StopAlert, Incident, IncidentRun, IncidentNote)
