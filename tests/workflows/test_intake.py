"""`manage.py intake`: a file of cases, one run for each good line, and nothing lost by a bad one."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from common.models import Tenant
from tests.factories import make_tenant
from workflows import intake
from workflows.intake_files import LONGEST_LINE
from workflows.models import Document, Run, SourceEvent

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant("harbour")


def case(**fields: Any) -> dict[str, Any]:
    return {"customer_id": "c-1", "requester_email": "mara@example.com", "message": "Refund please."} | fields


def take_in(file: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """The command's output and its report."""
    out, report = StringIO(), file.with_suffix(".report.json")
    call_command("intake", "refund-triage", str(file), "--report", str(report), *options, stdout=out)
    return out.getvalue(), json.loads(report.read_text())


def json_lines(folder: Path, *lines: object) -> Path:
    file = folder / "cases.jsonl"
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    file.write_bytes(b"\n".join(texts) + b"\n")
    return file


def test_each_good_line_becomes_a_run(tenant: Tenant, tmp_path: Path) -> None:
    file = json_lines(
        tmp_path,
        case(event_id="e-1", order_id="9001"),
        {"event_id": "e-2", "record": "ticket-7", "sequence": 3, "input": case(message="Zoë ❤ 10 €")},
        case(),
    )
    said, report = take_in(file, "--system", "helpdesk")
    assert said == "3 lines: 3 accepted, 0 duplicate, 0 refused.\n"
    assert [line["event_id"] for line in report["lines"]] == ["e-1", "e-2", "cases.jsonl:3"]
    assert report["complete"] is True
    runs = {run.source_event_id: run for run in Run.objects.filter(tenant=tenant)}
    assert {(run.source_system, run.status) for run in runs.values()} == {("helpdesk", "queued")}
    assert (runs["e-2"].source_record, runs["e-2"].source_sequence) == ("ticket-7", 3)
    kept = json.loads(bytes(Document.objects.get(pk=runs["e-2"].input_ref).content))
    assert kept == case(message="Zoë ❤ 10 €")
    assert runs["e-1"].requested_by == "command_line:intake"


def test_the_same_file_again_makes_nothing_twice(tenant: Tenant, tmp_path: Path) -> None:
    file = json_lines(tmp_path, case(event_id="e-1"), case())
    _, first = take_in(file)
    said, again = take_in(file)
    assert said == "2 lines: 0 accepted, 2 duplicate, 0 refused.\n"
    assert [line["run_id"] for line in again["lines"]] == [line["run_id"] for line in first["lines"]]
    assert Run.objects.count() == 2
    assert list(SourceEvent.objects.values_list("duplicates", flat=True)) == [1, 1]


def test_it_goes_on_where_it_was_stopped(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = json_lines(tmp_path, *(case(event_id=f"e-{number}") for number in range(6)))
    really_start = intake.start_run

    def stop_at_the_fourth(**arguments: Any) -> Any:
        if arguments["source"].event_id == "e-3":
            raise KeyboardInterrupt
        return really_start(**arguments)

    monkeypatch.setattr(intake, "start_run", stop_at_the_fourth)
    with pytest.raises(CommandError, match="Give the same command again"):
        take_in(file)
    partly = json.loads(file.with_suffix(".report.json").read_text())
    assert (partly["accepted"], partly["complete"]) == (3, False)
    monkeypatch.undo()
    _, report = take_in(file)
    assert (report["accepted"], report["duplicate"], Run.objects.count()) == (3, 3, 6)


def test_bad_lines_are_refused_with_reasons_and_cost_nothing_else(tenant: Tenant, tmp_path: Path) -> None:
    file = json_lines(
        tmp_path,
        case(event_id="good-1"),
        b'{"event_id": "e", "event_id": "f"}',
        b"{not json",
        b"[1, 2]",
        b'{"message": "\xff"}',
        b'{"message": "' + b"x" * (LONGEST_LINE + 10) + b'"}',
        b"",
        case(event_id="no-mail", requester_email="nobody"),
        case(event_id="more", colour="red"),
        case(event_id=7),
        case(event_id="good-1", message="Something else."),
        case(event_id="good-2"),
    )
    _, report = take_in(file)
    refused = {line["line"]: line["code"] for line in report["lines"] if line["result"] == "refused"}
    assert refused == {
        2: "duplicate_key", 3: "syntax", 4: "top_level_not_object", 5: "invalid_utf8", 6: "line_too_long",
        8: "invalid_input", 9: "invalid_input", 10: "invalid_source", 11: "event_conflict",
    }  # fmt: skip
    assert (report["accepted"], report["refused"], report["total"]) == (2, 9, 11)
    assert sum(report["reasons"].values()) == 9
    assert set(Run.objects.values_list("source_event_id", flat=True)) == {"good-1", "good-2"}


def test_no_value_of_a_line_stands_in_the_report(tenant: Tenant, tmp_path: Path) -> None:
    wrong = case(requester_email="mara at example.com", message="SECRET WISH")
    file = json_lines(tmp_path, wrong, b'{"SECRET": SECRET}')
    take_in(file)
    text = file.with_suffix(".report.json").read_text()
    assert "SECRET" not in text
    assert "mara" not in text


CSV_HEAD = "event_id,customer_id,requester_email,message,order_id,claimed_amounts\n"


def csv_file(folder: Path, *lines: str, head: str = CSV_HEAD) -> Path:
    file = folder / "cases.csv"
    file.write_text("\ufeff" + head + "".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return file


def test_csv(tenant: Tenant, tmp_path: Path) -> None:
    claims = '"[{""amount"": ""12.50"", ""currency"": ""EUR""}]"'
    file = csv_file(
        tmp_path,
        "e-1,c-1,mara@example.com,Refund please,9001,",
        f'e-2,c-1,mara@example.com,"Two lines,\nand a ""quote""",9001,{claims}',
        ",c-1,mara@example.com,No event id,,",
    )
    _, report = take_in(file)
    assert [(line["line"], line["event_id"], line["result"]) for line in report["lines"]] == [
        (2, "e-1", "accepted"), (3, "e-2", "accepted"), (5, "cases.csv:5", "accepted"),
    ]  # fmt: skip
    second = Run.objects.get(source_event_id="e-2")
    assert json.loads(bytes(Document.objects.get(pk=second.input_ref).content)) == case(
        message='Two lines,\nand a "quote"',
        order_id="9001",
        claimed_amounts=[{"amount": "12.50", "currency": "EUR"}],
    )


def test_a_quote_that_nobody_closed_takes_no_other_line_with_it(tenant: Tenant, tmp_path: Path) -> None:
    file = csv_file(
        tmp_path,
        "e-1,c-1,mara@example.com,Good,,",
        'e-2,c-1,mara@example.com,"never closed,,',
        "e-3,c-1,mara@example.com,Good,,",
        'e-4,c-1,mara@example.com,a 5" lamp,,',
        "e-5,c-1,mara@example.com,too,many,,,columns",
        "e-6,c-1,mara@example.com,Good,,{broken",
        *(f"e-{number},c-1,mara@example.com,Good,," for number in range(7, 90)),
    )
    _, report = take_in(file)
    refused = {line["line"]: line["code"] for line in report["lines"] if line["result"] == "refused"}
    assert refused == {3: "unbalanced_quotes", 5: "unbalanced_quotes", 6: "wrong_columns", 7: "syntax"}
    assert report["accepted"] == 85


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-flow", "cases.jsonl"], "Installed: refund-triage"),
        (["refund-desk-agent", "cases.jsonl"], "takes proposals"),
        (["refund-triage", "cases.xlsx"], "no file of a known form"),
        (["refund-triage", "nowhere.jsonl"], "There is no file nowhere.jsonl."),
        (["refund-triage", "cases.jsonl", "--tenant", "nobody"], "Known: harbour"),
        (["refund-triage", "bad.csv"], "names its columns"),
    ],
)
def test_what_is_said_about_a_wrong_command(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    json_lines(tmp_path, case())
    (tmp_path / "cases.xlsx").touch()
    (tmp_path / "bad.csv").write_text("a,a,b\n1,2,3\n")
    with pytest.raises(CommandError, match=message):
        call_command("intake", *arguments)


def test_of_several_tenants_one_must_be_named(tenant: Tenant, tmp_path: Path) -> None:
    other = make_tenant("linden")
    file = json_lines(tmp_path, case(event_id="e-1"))
    with pytest.raises(CommandError, match="Say which tenant"):
        take_in(file)
    take_in(file, "--tenant", "linden")
    assert Run.objects.get().tenant_id == other.pk
    take_in(file, "--tenant", "harbour")
    assert Run.objects.filter(tenant=tenant).count() == 1
