"""`./placet token rotate harbour plc_abcdefgh`: tokens of automations, and whether one has leaked."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from access import tokens
from access.actions import issue_token, revoke_token
from access.actions_agents import rotate_token
from access.enums import Scope
from access.management.operator import Verbs, at_the_console, known_agent, tenant_named
from access.models import ApiToken
from access.selectors import tokens as tokens_of
from common.clock import db_clock


class Command(Verbs):
    help = "Tokens: issue, rotate, revoke, list, check. A token is shown once."

    def verbs(self, add: Callable[..., CommandParser]) -> None:
        issue = add("issue", self.issue, "a token for an automation that is there", "tenant", "automation")
        issue.add_argument("--scope", action="append", default=[], choices=Scope.values)
        issue.add_argument("--days", type=int, default=90)
        rotate = add(
            "rotate", self.rotate, "a new one in its place, which goes on a while", "tenant", "prefix"
        )
        rotate.add_argument("--overlap-hours", type=float, default=24)
        add("revoke", self.revoke, "end it now", "tenant", "prefix").add_argument("--why", required=True)
        add("list", self.list_all, "all of an organisation, newest first", "tenant")
        check = add("check", self.look, "look for tokens of ours in files, or in what is piped in")
        check.add_argument("files", nargs="*")
        check.add_argument("--revoke", action="store_true", help="Revoke those that still work.")

    def issue(self, said: dict[str, Any]) -> str:
        text, _ = issue_token(
            agent=known_agent(tenant_named(said["tenant"]), said["automation"]), by=at_the_console(), clock=db_clock,
            scopes=[Scope(scope) for scope in said["scope"]], life=timedelta(days=said["days"]),
        )  # fmt: skip
        return f"{text} (shown this once; it ends in {said['days']} days)"

    def rotate(self, said: dict[str, Any]) -> str:
        old = _one(said)
        text, _ = rotate_token(
            token=old, overlap=timedelta(hours=said["overlap_hours"]), by=at_the_console(), clock=db_clock
        )
        return f"{text} (shown this once; {old.prefix}… ends in {said['overlap_hours']:g} hours)"

    def revoke(self, said: dict[str, Any]) -> str:
        revoke_token(token=_one(said), by=at_the_console(), clock=db_clock, reason=said["why"])
        return f"{said['prefix']}… is revoked."

    def list_all(self, said: dict[str, Any]) -> str:
        rows = tokens_of(tenant_named(said["tenant"]).pk)
        return "\n".join(_line(row) for row in rows) or "There is none yet."

    def look(self, said: dict[str, Any]) -> str:
        """Says which were found and whether they work; never their text. Ends with an error where one works."""
        texts = [Path(name).read_text(errors="replace") for name in said["files"]] or [sys.stdin.read()]
        found = {tokens.fingerprint(text): text for each in texts for text in tokens.find_tokens(each)}
        rows = ApiToken.objects.filter(sha256__in=found).select_related("agent", "tenant")
        known = {row.sha256: row for row in rows}
        alive = [row for row in known.values() if _works(row)]
        lines = [_found(text, known.get(sha256)) for sha256, text in found.items()]
        if said["revoke"]:
            for row in alive:
                revoke_token(token=row, by=at_the_console(), clock=db_clock, reason="found by token check")
            return "\n".join([*lines, f"{len(alive)} revoked."])
        if alive:
            raise CommandError(
                "\n".join([*lines, f"{len(alive)} still work: revoke them, or run it with --revoke."])
            )
        return "\n".join([*lines, "No token that works was found."])


def _one(said: dict[str, Any]) -> ApiToken:
    tenant, prefix = tenant_named(said["tenant"]), said["prefix"].rstrip("…")[: tokens.SHOWN]
    rows = list(ApiToken.objects.filter(tenant=tenant, prefix=prefix).select_related("agent")[:2])
    if len(prefix) < tokens.SHOWN or len(rows) != 1:
        raise CommandError(f"There is no token {prefix!r}: its first {tokens.SHOWN} characters are needed.")
    return rows[0]


def _works(row: ApiToken) -> bool:
    return row.revoked_at is None and row.expires_at > db_clock() and row.agent.is_active


def _found(text: str, row: ApiToken | None) -> str:
    prefix = text[: tokens.SHOWN]
    if row is None:
        return f"{prefix}…  not one of this installation"
    return f"{prefix}…  {row.tenant.slug} {row.agent.name}  {'WORKS' if _works(row) else 'ended'}"


def _line(row: ApiToken) -> str:
    state = "revoked" if row.revoked_at else "valid" if row.expires_at > db_clock() else "ended"
    used = f"{row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else "never"
    return (
        f"{row.prefix}…  {row.agent.name}  {state}  ends {row.expires_at:%Y-%m-%d}  last used {used}"
        f"  {', '.join(row.scopes) or '-'}"
    )
