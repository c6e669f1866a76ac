"""Rows of this app in Django's admin, to look at."""

from common.admin import show
from repair.models import RepairPacket

show(RepairPacket)
