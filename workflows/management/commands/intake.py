"""`manage.py intake WORKFLOW FILE`: a file of cases, taken in line by line."""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.models import Tenant
from workflows import registry
from workflows.definitions import Workflow
from workflows.intake import Report, take_in
from workflows.intake_files import UnreadableFile, read

_FORMS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


class Command(BaseCommand):
    help = (
        "Takes in a file of cases, CSV or JSON lines. Each line starts one run; a line that was taken in before is "
        "counted as a duplicate, so the command can be stopped and given again."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("workflow", help="such as refund-triage")
        parser.add_argument("file", type=Path, help="columns or keys are the fields of the workflow's input, and "
                            "event_id, record and sequence where the source knows them")  # fmt: skip
        parser.add_argument(
            "--tenant", default="", help="its short name; may be left out where there is one only"
        )
        parser.add_argument(
            "--system", default="file", help="the name of the system that the events come from"
        )
        parser.add_argument(
            "--format", choices=["csv", "jsonl"], default="", help="where the file's name does not say"
        )
        parser.add_argument("--report", type=Path, help="writes what became of each line to this JSON file")

    def handle(self, *args: Any, **options: Any) -> None:
        flow, tenant, file = (
            self._workflow(options["workflow"]),
            self._tenant(options["tenant"]),
            options["file"],
        )
        form = options["format"] or _FORMS.get(file.suffix.lower(), "")
        if not file.is_file():
            raise CommandError(f"There is no file {file}.")
        if not form:
            raise CommandError(
                f"{file} is no file of a known form; name it .csv or .jsonl, or give --format."
            )
        report = Report()
        try:
            self._take_in(flow, tenant, file, form, options, report)
        except UnreadableFile as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self._say(report)
            raise CommandError("Stopped. Give the same command again to go on.", returncode=130) from None
        self._say(report)

    def _take_in(
        self,
        flow: type[Workflow],
        tenant: Tenant,
        file: Path,
        form: str,
        options: dict[str, Any],
        report: Report,
    ) -> None:
        by = Actor("command_line:intake", Via.COMMAND_LINE, Owner.AUTOMATION)
        with ExitStack() as stack:
            if options["report"]:
                report.out = stack.enter_context(options["report"].open("w", encoding="utf-8"))
            stack.enter_context(report)
            bar = stack.enter_context(
                tqdm(total=file.stat().st_size, unit="B", unit_scale=True, desc=file.name, disable=None)
            )
            lines = read(file, flow.contract.input, form=form, on_bytes=bar.update)
            taken = take_in(
                lines, tenant_id=tenant.pk, workflow=flow.name, system=options["system"], name=file.name, by=by,
                clock=db_clock,
            )  # fmt: skip
            for one in taken:
                report.add(one)
                bar.set_postfix(report.counts, refresh=False)

    def _workflow(self, name: str) -> type[Workflow]:
        try:
            flow = registry.workflow(name)
        except registry.UnknownWorkflow:
            known = ", ".join(flow.name for flow in registry.workflows() if not flow.accepts_proposals)
            raise CommandError(f"There is no workflow {name}. Installed: {known}.") from None
        if flow.accepts_proposals:
            raise CommandError(f"{name} takes proposals through the API and starts no runs from events.")
        return flow

    def _tenant(self, slug: str) -> Tenant:
        found = list(
            Tenant.objects.filter(slug=slug) if slug else Tenant.objects.order_by("created_at", "id")[:2]
        )
        if len(found) != 1:
            known = ", ".join(Tenant.objects.order_by("slug").values_list("slug", flat=True)[:20])
            raise CommandError(f"Say which tenant with --tenant. Known: {known or 'none yet'}.")
        return found[0]

    def _say(self, report: Report) -> None:
        found = report.document()
        self.stdout.write(
            f"{found['total']} lines: {found['accepted']} accepted, {found['duplicate']} duplicate, "
            f"{found['refused']} refused."
        )
        for code, count in found["reasons"].items():
            self.stdout.write(f"  refused as {code}: {count}")
