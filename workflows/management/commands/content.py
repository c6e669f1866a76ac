"""`./placet content erase harbour RUN --why file-17`, the same with `hold` and `release`; and `content seal`."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from access.management.operator import Verbs, at_the_console, tenant_named
from common.clock import db_clock
from workflows.actions.erasing import erase_content, hold_content, release_content
from workflows.actions.sealing_old import OwnerNeeded, seal_old


class Command(Verbs):
    help = "What runs held: erase it for good, keep it under a legal hold, or seal what lies in clear."

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        why = "A code or file number, without personal data; it stays in the history."
        for name, do, says in (
            ("erase", self._erase, "destroy the key of a run's content; proof and history stay"),
            ("hold", self._hold, "keep it, whatever its retention says"),
            ("release", self._release, "end the hold"),
        ):
            add(name, do, says, "tenant", "run").add_argument("--why", required=True, help=why)
        add(
            "seal", self._seal, "seal what was stored before contents were sealed; as the owner of the tables"
        )

    def _seal(self, options: dict[str, Any]) -> str:
        try:
            count = seal_old(by=at_the_console())
        except OwnerNeeded as missing:
            raise CommandError(str(missing)) from None
        return f"{count} rows sealed. Nothing lies in clear any more; backups of before still have it."

    def _erase(self, options: dict[str, Any]) -> str:
        erased = erase_content(**_about(options), why=options["why"], by=at_the_console(), clock=db_clock)
        if not erased.done:
            return "It was erased before."
        left = (
            f" {erased.left_plain} rows from before contents were sealed stay in clear."
            if erased.left_plain
            else ""
        )
        return f"Erased.{left}"

    def _hold(self, options: dict[str, Any]) -> str:
        held = hold_content(**_about(options), reason=options["why"], by=at_the_console(), clock=db_clock)
        return "Held." if held else "It is held already."

    def _release(self, options: dict[str, Any]) -> str:
        ended = release_content(**_about(options), reason=options["why"], by=at_the_console())
        return "Released." if ended else "Nothing holds it."


def _about(options: dict[str, Any]) -> dict[str, UUID]:
    try:
        run_id = UUID(options["run"])
    except ValueError:
        raise CommandError("The run is named by its id.") from None
    return {"tenant_id": tenant_named(options["tenant"]).pk, "run_id": run_id}
