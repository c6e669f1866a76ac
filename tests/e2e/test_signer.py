"""The signer as the process that it is: killed at any moment, and two at once."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from audit.checkpoints import opened, parse_vkey
from audit.models import Checkpoint, SignerReport
from launch.process import stop
from tests.audit.events import tamper
from tests.audit.signing import address, sealed
from tests.e2e.fleet import eventually as eventually_within
from tests.processes import ROOT, Processes

pytestmark = [pytest.mark.django_db, pytest.mark.e2e]
NORTH = UUID(int=1)
eventually = partial(eventually_within, seconds=20)


@pytest.fixture
def signers(processes: Processes, tmp_path: Path) -> Processes:
    """Processes that are told what a signer is told, and nothing else."""
    processes.env = {
        "PATH": os.environ["PATH"], "DATABASE_SIGNER_URL": address(), "PLACET_SIGNER_DIR": str(tmp_path / "signer"),
    }  # fmt: skip
    return processes


def start(signers: Processes, **env: str) -> subprocess.Popen[bytes]:
    before, signers.env = signers.env, signers.env | env
    command = (sys.executable, "-m", "signer", "run", "--every", "0.1", "--poll", "0.1")
    try:
        return signers.start("signer", *command)
    finally:
        signers.env = before


def run(signers: Processes, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "signer", *arguments]
    return subprocess.run(command, cwd=ROOT, env=signers.env, capture_output=True, text=True, check=False)


def sizes() -> list[int]:
    found = Checkpoint.objects.filter(tenant_id=NORTH).order_by("recorded_at")
    return list(found.values_list("size", flat=True))


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "checkpoints" / str(NORTH)).glob("*")}


def test_killed_between_its_file_and_its_row_it_comes_out_right(signers: Processes, tmp_path: Path) -> None:
    sealed(NORTH, 3)
    process = start(signers, PLACET_CRASHPOINT="CP17:kill")
    assert process.wait(30) == -signal.SIGKILL
    assert sizes() == []
    assert len(files(tmp_path / "signer")) == 1
    sealed(NORTH, 2)
    start(signers)
    eventually(lambda: sizes() == [3, 5], what=lambda: signers.log("signer")[-2000:])
    notes = set(Checkpoint.objects.values_list("note", flat=True))
    assert set(files(tmp_path / "signer").values()) == notes


def test_killed_at_any_moment_it_signs_one_history(signers: Processes, tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(8):
        process = start(signers)
        for _ in range(3):
            sealed(NORTH, 5)
            time.sleep(chance.uniform(0.0, 0.5))
        process.kill()
        process.wait(5)
    total = 8 * 3 * 5
    start(signers)
    eventually(lambda: sizes()[-1:] == [total], what=lambda: signers.log("signer")[-2000:])
    key = parse_vkey((tmp_path / "signer/signer.pub").read_text())
    notes = list(Checkpoint.objects.values_list("note", flat=True))
    assert len({opened(note, key).size for note in notes}) == len(notes), "one note for each size"
    assert set(files(tmp_path / "signer").values()) == set(notes)
    assert not SignerReport.objects.exists()


def test_a_second_signer_waits_for_the_first_to_end(signers: Processes, tmp_path: Path) -> None:
    sealed(NORTH, 1)
    first = start(signers)
    eventually(lambda: sizes() == [1])
    start(signers, PLACET_SIGNER_DIR=str(tmp_path / "other"))
    eventually(lambda: "Another signer is at work" in signers.log("signer"))
    assert sizes() == [1]
    stop(first, signal.SIGTERM, grace=5)
    eventually(lambda: sizes() == [1, 1], what=lambda: signers.log("signer")[-2000:])
    assert Checkpoint.objects.values("key_hash").distinct().count() == 2


def test_a_refusal_is_resolved_by_a_command_while_it_runs(signers: Processes) -> None:
    sealed(NORTH, 4)
    start(signers)
    eventually(lambda: sizes() == [4])
    tamper("DELETE FROM audit_seal WHERE tenant_id = %s AND seq > 2", NORTH)
    eventually(SignerReport.objects.exists, what=lambda: signers.log("signer")[-2000:])
    said = run(signers, "status")
    assert said.returncode == 1
    assert f"{NORTH}: 4 events signed at" in said.stdout
    assert "REFUSED since" in said.stdout
    done = run(signers, "accept", "--tenant", str(NORTH), "--reason", "Restored the backup of Sunday")
    assert done.returncode == 0, done.stderr
    assert "break 4 " in done.stdout
    assert sizes() == [4, 2]
    assert run(signers, "status").returncode == 0
    again = run(signers, "accept", "--tenant", str(NORTH), "--reason", "Twice")
    assert (again.returncode, again.stderr.strip()) == (1, "Nothing is refused for this tenant.")


@pytest.mark.parametrize("name", ["DATABASE_SIGNER_URL", "PLACET_SIGNER_DIR"])
def test_what_it_lacks_is_named(signers: Processes, name: str) -> None:
    del signers.env[name]
    done = run(signers, "once")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{name} is not set.")


def test_it_waits_for_a_database_that_is_away(signers: Processes) -> None:
    sealed(NORTH, 1)
    here = signers.env["DATABASE_SIGNER_URL"]
    process = start(signers, DATABASE_SIGNER_URL=here.replace("host=", "host=/nowhere"))
    eventually(lambda: "The database cannot be used" in signers.log("signer"))
    assert process.poll() is None
