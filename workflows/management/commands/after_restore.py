"""After a backup was restored: nothing is sent, and everything that has not ended is unknown until reconciled."""

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from workflows import registry
from workflows.worker.restore import NotAllRestored, after_restore


class Command(BaseCommand):
    help = "Run this after restoring a backup, before any worker starts. Freezes everything and says what is left."

    def handle(self, **_: Any) -> None:
        registry.register_definitions(clock=db_clock)
        by = Actor(f"command_line:{getpass.getuser()}", Via.COMMAND_LINE, Owner.PERSON)
        try:
            found = after_restore(by=by, clock=db_clock)
        except NotAllRestored as error:
            raise CommandError(
                f"{error.left} actions, questions or steps could not be put in doubt or stopped; the log says why."
                " START NO WORKER: give this command again until none is left. Everything stays frozen"
                f" ({error.freeze.pk})."
            ) from error
        self.stdout.write(
            f"Everything is frozen ({found.freeze.pk}).\n"
            f"{found.in_doubt} actions are in doubt: the sweep asks their providers, and what those do not know is for"
            " people (Repair).\n"
            f"{found.asked_anew} open questions are invalid and can be asked again (Repair).\n"
            f"{found.stopped} runs that had not asked yet are stopped: see whether it was done, and cancel them"
            " (Repair).\n"
            f'When no action is unknown any more: ./placet lift {found.freeze.pk} --why "..."'
        )
