"""Rows of telling people with valid defaults, not saved."""

from typing import Any

from access.models import User
from common.ids import new_id
from common.models import Tenant
from notify.models import Destination, Dispatch, Follower, Message, Notice
from tests import rows


def message_row(tenant: Tenant, **fields: Any) -> Message:
    values: dict[str, Any] = {
        "kind": "test", "subject_type": "thing", "subject_id": new_id(), "lead": "Refund EUR 12.50 for order 1042",
        "digest": "a1b2c3d4e5f60718" * 4, "facts": [["Workflow", "refunds"]], "href": "/review/",
        "created_at": rows.now(),
    }  # fmt: skip
    return Message(tenant=tenant, **(values | fields))


def notice_row(message: Message, user: User, **fields: Any) -> Notice:
    values: dict[str, Any] = {"message": message, "user": user, "created_at": rows.now()}
    return Notice(tenant_id=message.tenant_id, **(values | fields))


def mail_row(notice: Notice, **fields: Any) -> Dispatch:
    values: dict[str, Any] = {
        "message": notice.message, "channel": "mail", "notice": notice, "created_at": rows.now(), "due_at": rows.now(),
    }  # fmt: skip
    return Dispatch(tenant_id=notice.tenant_id, **(values | fields))


def chat_row(message: Message, destination: Destination, **fields: Any) -> Dispatch:
    values: dict[str, Any] = {
        "message": message, "channel": "chat", "destination": destination, "created_at": rows.now(),
        "due_at": rows.now(),
    }  # fmt: skip
    return Dispatch(tenant_id=message.tenant_id, **(values | fields))


def destination_row(
    tenant: Tenant, *, url: str = "https://chat.example/hook", secret: str = "", **fields: Any
) -> Destination:
    values: dict[str, Any] = {
        "name": f"room-{new_id().hex[-8:]}", "kinds": ["asked"], "created_by": "user:1", "created_at": rows.now(),
    }  # fmt: skip
    made = Destination(tenant=tenant, **(values | fields))
    made.seal_in(url, secret)
    return made


def follower_row(tenant: Tenant, **fields: Any) -> Follower:
    return Follower(tenant=tenant, **({"name": "somebody", "seq": 0} | fields))
