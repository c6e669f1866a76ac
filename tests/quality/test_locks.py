"""What is installed is written down: every package with its hash, none with an address."""

import re

import pytest

from tests.processes import ROOT


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_lock_has_hashes_and_no_addresses(name: str) -> None:
    text = (ROOT / name).read_text()
    packages = re.findall(
        r"^[a-z0-9][^\n]*==[^\n]*\\\n(?:\s+--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", text, flags=re.MULTILINE
    )
    assert len(packages) == len(re.findall(r"^[a-z0-9]", text, flags=re.MULTILINE))
    assert "://" not in text


def pins(name: str) -> dict[str, str]:
    return dict(
        re.findall(r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+)", (ROOT / name).read_text(), flags=re.MULTILINE)
    )


def test_tests_run_on_the_versions_that_the_product_runs_on() -> None:
    product, tests = pins("requirements.lock"), pins("requirements-dev.lock")
    assert product.items() <= tests.items()


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_every_requirement_is_locked(name: str) -> None:
    lines = (ROOT / f"{name}.in").read_text().splitlines()
    wanted = {re.split(r"[\[<>=; ]", line)[0].lower() for line in lines if line and line[0] not in "#-"}
    assert wanted <= pins(f"{name}.lock").keys()
