"""`./placet rotate_content_key`: after a new first key in PLACET_CONTENT_KEYS."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.management.operator import at_the_console
from common import content_keys
from workflows.actions.rewrapping import rewrap_keys


class Command(BaseCommand):
    help = (
        "Wrap the keys of all contents under the first key of PLACET_CONTENT_KEYS. Contents stay as they are."
    )

    def handle(self, **options: Any) -> None:
        found = rewrap_keys(by=at_the_console())
        says = f"{found.done} keys wrapped anew under {content_keys.current_name()}."
        if found.left:
            raise CommandError(
                f"{says} {found.left} others do not open: their wrapping key is not in PLACET_CONTENT_KEYS, or they"
                " are damaged. Keep the old keys in the list, and see ./placet doctor."
            )
        self.stdout.write(f"{says} Older ones may go now.")
