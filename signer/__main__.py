"""``python -m signer run | once | key | status | accept``. People call it as ``./placet signer ...``."""

import argparse
import getpass
import logging
import os
import sys
import time
from pathlib import Path
from uuid import UUID

import psycopg

from audit.checkpoints import parse
from audit.checkpoints import public_key as public_half
from signer import SignerError
from signer.database import Database, connect
from signer.folder import Folder
from signer.history import Refused
from signer.work import EVERY_S, Work

log = logging.getLogger("signer")
_POLL_S, _LONGEST_WAIT_S = 5.0, 60.0


def main(arguments: list[str]) -> int:
    """The exit code: 0, or 1 with one clear line on standard error."""
    options = _parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    os.umask(0o077)
    try:
        folder = Folder(Path(_required("PLACET_SIGNER_DIR", "its own folder")))
        return int(options.act(folder, options) or 0)
    except Refused as refused:
        print(f"This history cannot be accepted: {refused.detail}", file=sys.stderr)
    except (SignerError, psycopg.Error) as error:
        print(error, file=sys.stderr)
    return 1


def _run(folder: Folder, options: argparse.Namespace) -> None:
    """Until it is killed, at whatever moment. What cannot be reached is tried again."""
    folder.key()  # a key that cannot be used ends it at once
    wait = options.poll
    while True:
        try:
            with connect(_address()) as connection:
                _wait_alone(Database(connection), options.poll)
                work = Work(folder, Database(connection), every_s=options.every)
                while True:
                    work.once()
                    wait = options.poll
                    time.sleep(options.poll)
        except psycopg.Error as error:
            log.warning("The database cannot be used, again in %.0f s: %s", wait, error)
            time.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT_S)


def _wait_alone(database: Database, poll: float) -> None:
    said = False
    while not database.alone():
        if not said:
            log.warning("Another signer is at work on this database; waiting for it to end.")
        said = True
        time.sleep(poll)


def _once(folder: Folder, _options: argparse.Namespace) -> int:
    """One look at everything; 1 where something is refused."""
    with connect(_address()) as connection:
        Work(folder, Database(connection)).once()
    return int(bool(folder.refused()))


def _key(folder: Folder, _options: argparse.Namespace) -> None:
    print(public_half(folder.key()).vkey)


def _status(folder: Folder, _options: argparse.Namespace) -> int:
    refused = False
    for tenant in sorted({*folder.tenants(), *folder.refused()}):
        try:
            signed, refusal = folder.signed(tenant), folder.refusal(tenant)
        except SignerError as error:
            print(f"{tenant}: REFUSED: {error}")
            refused = True
            continue
        last = (
            f"{signed.history.size} events signed at {parse(signed.note).time:%Y-%m-%d %H:%M:%S} UTC"
            if signed
            else ""
        )
        why = f"REFUSED since {refusal.at} ({refusal.cause}): {refusal.detail}" if refusal else ""
        print(f"{tenant}: {'. '.join(part for part in (last or 'nothing signed', why) if part)}")
        refused = refused or refusal is not None
    return int(refused)


def _accept(folder: Folder, options: argparse.Namespace) -> None:
    with connect(_address()) as connection:
        signed = Work(folder, Database(connection)).accept(options.tenant, options.reason, getpass.getuser())
    print(signed.note, end="")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="placet signer", description="Sign how far each history goes.")
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="sign until it is stopped; ./placet up does this")
    run.add_argument("--every", type=float, default=EVERY_S, help="seconds between two looks at a tenant")
    run.add_argument("--poll", type=float, default=_POLL_S, help="seconds between two counts of new events")
    run.set_defaults(act=_run)
    for name, act, text in (
        ("once", _once, "one look at every tenant"),
        ("key", _key, "print the public key"),
        ("status", _status, "what was signed last, and what is refused"),
    ):
        commands.add_parser(name, help=text).set_defaults(act=act)
    accept = commands.add_parser("accept", help="sign a history that is not the one signed before")
    accept.add_argument("--tenant", type=UUID, required=True, help="the id in what was refused")
    accept.add_argument("--reason", required=True, help="one line; it stands in the checkpoint for good")
    accept.set_defaults(act=_accept)
    return parser.parse_args(arguments)


def _address() -> str:
    return _required("DATABASE_SIGNER_URL", "the PostgreSQL address of its own role")


def _required(name: str, what: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise SignerError(f"{name} is not set. It holds {what}. `./placet signer COMMAND` sets it.")
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
