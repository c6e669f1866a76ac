"""What the person at the terminal reads when everything runs."""

import json
import os
from pathlib import Path

_NOBODY = "  Nobody can sign in yet. Make a tenant and people: ./placet add_tenant, ./placet add_person"


def greeting(address: str, demo_file: Path | None, data: Path, seconds: float) -> str:
    """The address, who can sign in, and what to try first."""
    people = _people(demo_file) if demo_file else _NOBODY
    return f"""
Placet runs at {address}   (ready after {seconds:.1f} s)

{people}

  Logs and data: {data}
  {_mail(data)}
  Ctrl-C stops everything; the next start finds it as it was.
"""


def _mail(data: Path) -> str:
    if os.environ.get("PLACET_MAIL_URL"):
        return "Mails go to the server in PLACET_MAIL_URL."
    return f"No mail server (PLACET_MAIL_URL): mails become files in {data / 'mail'}, and notices stand in the app."


def _people(demo_file: Path) -> str:
    demo = json.loads(demo_file.read_text())
    rows = [
        f"    {role:<10} {name:<14} {password}"
        for role, people in demo["users"].items()
        for name, password in people.items()
    ]
    first, auditor = (next(iter(demo["users"][role])) for role in ("reviewer", "auditor"))
    return "\n".join(
        [
            "  Who can sign in (role, name, password):",
            *rows,
            "",
            f"  Try this first: sign in as {first}, open a proposal under Review, approve it, watch it run.",
            f"  Then look for its receipt under Runs and, as {auditor}, for every step of it under History.",
            f"  Tokens for the API, and an input to try it with, are in {demo_file}.",
        ]
    )
