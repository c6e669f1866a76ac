"""`./placet content erase harbour RUN --why file-17`, the same with `hold` and `release`; `seal`;
legal holds over more than a run (`hold-all`, `holds`, `lift`); `find`; `erase-quarantined`.
"""

import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from access.management.operator import Verbs, at_the_console, person_named, tenant_named
from common.clock import db_clock
from common.deadline import Deadline
from workflows.actions.contents_searched import searched
from workflows.actions.erasing import erase_content, hold_content, release_content
from workflows.actions.erasing_deliveries import erase_quarantined
from workflows.actions.legal_holds import lift_legal_hold, place_legal_hold
from workflows.actions.sealing_old import OwnerNeeded, seal_old
from workflows.content_search import LEAST, mentions
from workflows.models import LegalHold


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
        wide = add("hold-all", self._hold_all, "keep all that is about something, and what comes", "tenant")
        wide.add_argument("--target", default="", help="Exactly, as order:1042.")
        wide.add_argument("--record", default="", help="Of a source system, as crm:7.")
        wide.add_argument(
            "--person", default="", help="A username: what was asked by or for them, or decided by them."
        )
        wide.add_argument("--why", required=True, help=why)
        add("holds", self._holds, "the legal holds in force, with their ids", "tenant")
        add("lift", self._lift, "end one of those", "tenant", "hold").add_argument(
            "--why", required=True, help=why
        )
        add("find", self._find, "in which runs a word stands; it is read from standard input", "tenant").add_argument(
            "--why", required=True, help=why
        )  # fmt: skip
        add(
            "erase-quarantined", self._erase_quarantined, "bodies of webhooks that were not understood", "tenant"
        ).add_argument("--why", required=True, help=why)  # fmt: skip
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

    def _hold_all(self, options: dict[str, Any]) -> str:
        person = person_named(options["person"]).pk if options["person"] else None
        made = place_legal_hold(
            tenant_id=tenant_named(options["tenant"]).pk, target=options["target"], record_=options["record"],
            person=person, why=options["why"], by=at_the_console(), clock=db_clock,
        )  # fmt: skip
        return f"Held: {made.scope}. {made.pk} ends it (content lift)."

    def _holds(self, options: dict[str, Any]) -> str:
        found = LegalHold.objects.filter(tenant=tenant_named(options["tenant"]), lifted_at=None)
        lines = [
            f"{one.pk}  {one.placed_at:%Y-%m-%d}  {one.scope}  ({one.why})" for one in found.order_by("pk")
        ]
        return "\n".join(lines) or "None, but for holds of single runs."

    def _lift(self, options: dict[str, Any]) -> str:
        hold_id = _uuid(options["hold"], "The hold is named by its id: content holds.")
        lift_legal_hold(
            tenant_id=tenant_named(options["tenant"]).pk, hold_id=hold_id, why=options["why"], by=at_the_console(),
            clock=db_clock,
        )  # fmt: skip
        return "Lifted."

    def _find(self, options: dict[str, Any]) -> str:
        """From standard input, so that the word stands in no list of processes and no history of a shell."""
        word = sys.stdin.readline().strip()
        if len(word) < LEAST:
            raise CommandError(f"Give the word on standard input, {LEAST} characters or more.")
        tenant = tenant_named(options["tenant"])
        found = mentions(tenant.pk, word, Deadline.after(86_400))
        searched(tenant_id=tenant.pk, found=len(found.places), why=options["why"], by=at_the_console())
        lines = [f"{run}  {', '.join(sorted(places))}" for run, places in sorted(found.places.items())]
        if found.unreadable:
            lines.append(f"{found.unreadable} values cannot be read: nobody can say what is in them.")
        return "\n".join(lines) or "It stands nowhere."

    def _erase_quarantined(self, options: dict[str, Any]) -> str:
        tenant = tenant_named(options["tenant"])
        return f"{erase_quarantined(tenant_id=tenant.pk, why=options['why'], by=at_the_console())} bodies erased."


def _about(options: dict[str, Any]) -> dict[str, UUID]:
    run_id = _uuid(options["run"], "The run is named by its id.")
    return {"tenant_id": tenant_named(options["tenant"]).pk, "run_id": run_id}


def _uuid(text: str, otherwise: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise CommandError(otherwise) from None
