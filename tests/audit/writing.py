"""What one process of writers does: the product's own actions, again and again, until it is told to stop."""

import signal
import threading
from uuid import UUID

from django.db import connection

from access.actions import add_to_group, create_group, create_user, remove_from_group
from access.enums import Role
from common.clock import db_clock
from common.ids import new_id
from common.models import Tenant
from tests.access.people import INSTALLER
from tests.faults.people import insist


def write_until_told(number: int, tenants: dict[UUID, str], threads: int) -> list[str]:
    """The ids of groups whose making was acknowledged, of which the history must tell once."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    done: list[str] = []
    ids = sorted(tenants)
    running = [
        threading.Thread(target=_write, args=(ids[(number + one) % len(ids)], over, done))
        for one in range(threads)
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return done


def _write(tenant_id: UUID, over: threading.Event, done: list[str]) -> None:
    tenant = insist(lambda: Tenant.objects.get(pk=tenant_id))
    while not over.is_set():
        done.append(_once(tenant))
    connection.close()


def _once(tenant: Tenant) -> str:
    """Somebody comes into a new group and leaves it again; the group's id."""
    group = insist(lambda: create_group(tenant=tenant, name=f"desk {new_id()}", by=INSTALLER, clock=db_clock))
    user = insist(
        lambda: create_user(
            tenant=tenant, username=f"user-{new_id()}", password=None, roles=[Role.REVIEWER], by=INSTALLER,
            clock=db_clock,
        )
    )  # fmt: skip
    insist(lambda: add_to_group(group=group, user=user, by=INSTALLER, clock=db_clock))
    insist(lambda: remove_from_group(group=group, user=user, by=INSTALLER, clock=db_clock))
    return str(group.pk)
