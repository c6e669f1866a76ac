"""`python -m launch up | manage ... | signer ... | roles`. People call it through ./placet."""

import argparse
import os
import sys
from pathlib import Path

import psycopg

from launch import LaunchError, roles
from launch.datadir import DEFAULT
from launch.manage import manage
from launch.signer import signer
from launch.up import up


def main(arguments: list[str]) -> int:
    """The exit code: 0, the command's own, or 1 with one clear line on standard error."""
    data_dir = Path(os.environ.get("PLACET_DATA_DIR") or DEFAULT)
    try:
        if arguments[:1] == ["manage"]:
            return manage(arguments[1:], data_dir)
        if arguments[:1] == ["roles"]:
            return make_roles()
        if arguments[:1] == ["signer"]:
            return signer(arguments[1:], data_dir)
        return up(parse(arguments, data_dir))
    except (LaunchError, psycopg.Error) as error:
        print(error, file=sys.stderr)
        return 1


def make_roles() -> int:
    """Makes the roles and the database on a server of a team's own, from four addresses."""
    names = (
        "DATABASE_ADMIN_URL",
        "DATABASE_OWNER_URL",
        "DATABASE_URL",
        "DATABASE_SYSTEM_URL",
        "DATABASE_SIGNER_URL",
    )
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise LaunchError(
            f"Set {', '.join(missing)}: the addresses of a superuser, the owner, the application, "
            "the system and the signer's role."
        )
    admin, owner, app, system, signer = (os.environ[name] for name in names)
    roles.bootstrap(admin, owner_url=owner, app_url=app, system_url=system, signer_url=signer)
    return 0


def parse(arguments: list[str], data_dir: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="placet")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("up", help="set everything up and run the product until Ctrl-C")
    command.add_argument("--port", type=int, help="of the web server; else the first free one from 8000")
    command.add_argument(
        "--data-dir", type=Path, default=data_dir, help=f"everything that is kept (now {data_dir})"
    )
    command.add_argument(
        "--no-demo", dest="demo", action="store_false", help="without demo people and example provider"
    )
    command.add_argument(
        "--no-signer",
        dest="signer",
        action="store_false",
        help="where one runs elsewhere, under its own account",
    )
    command.add_argument(
        "--workers", type=int, default=2, help="how many commands are executed at a time (now 2)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
