"""Django's ``migrate``, faster: a first start and every test database wait for it."""

from typing import Any

from django.core.management.commands.migrate import Command as Migrate

from common.migrating import unrendered_options


class Command(Migrate):
    def handle(self, *args: Any, **options: Any) -> str | None:
        with unrendered_options():
            told: str | None = super().handle(*args, **options)
        return told
