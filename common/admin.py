"""Django's admin, to look at rows: for superusers only, and without a way to change anything.

Everything that changes goes through the desks or the API, where it is checked and written down.
"""

from typing import Any

from django.contrib import admin
from django.db.models import BinaryField, Model
from django.http import HttpRequest

from common.dbroles import as_system
from common.web import rendered

# Contents, people's words and credentials are not shown to anybody here.
HIDDEN = (
    "password", "sha256", "content", "contract", "view", "volatile", "salt", "lease_token", "token", "callback",
    "address", "consequence", "reason", "affected", "user_message", "asks", "late_evidence", "words",
)  # fmt: skip


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows rows. No content of a case, no secret, no action, no link that changes."""

    actions = None
    show_full_result_count = False
    list_per_page = 50

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        with as_system():  # of every tenant
            return rendered(super().changelist_view(request, extra_context))

    def changeform_view(
        self, request: HttpRequest, object_id: Any = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        with as_system():
            return rendered(super().changeform_view(request, object_id, form_url, extra_context))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return shown_fields(self.model)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        return ["pk", *(name for name in ("tenant", "status", "created_at", "at") if has(self.model, name))]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


def shown_fields(model: type[Model]) -> list[str]:
    """The columns of a row that are neither content nor credential."""
    return [
        field.name for field in model._meta.concrete_fields
        if field.name not in HIDDEN and not isinstance(field, BinaryField)
    ]  # fmt: skip


def has(model: type[Model], name: str) -> bool:
    return any(field.name == name for field in model._meta.concrete_fields)


def show(*models: type[Model]) -> None:
    """Register ``models`` to be looked at."""
    for model in models:
        admin.site.register(model, ReadOnlyAdmin)
