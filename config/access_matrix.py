"""Which role may ask for which address, as one table: a test holds the site to it, and `docs/access.md` is made of it.

``GET`` and ``POST`` name roles; empty: there is no such method. *May ask* is not *gets a yes*: who may decide which
proposal, for one, is a question of groups and of whose it is, too.
"""

from dataclasses import dataclass
from typing import Final

from access.enums import Role, Scope

Roles = tuple[Role, ...]
NOBODY: Final[Roles] = ()
ALL: Final[Roles] = tuple(Role)
FIXERS: Final[Roles] = (Role.OPERATOR, Role.OWNER, Role.ADMIN)
LEADERS: Final[Roles] = (*FIXERS, Role.AUDITOR)
HISTORY: Final[Roles] = (Role.AUDITOR, Role.ADMIN)
ADMIN: Final[Roles] = (Role.ADMIN,)
REVIEWER: Final[Roles] = (Role.REVIEWER,)
PERSONAL: Final[Roles] = (Role.REVIEWER, Role.AUDITOR, Role.OWNER)


@dataclass(frozen=True, slots=True)
class Row:
    """One address: who may read it, who may change something there, and what that is."""

    get: Roles
    post: Roles
    says: str


PAGES: Final[dict[str, Row]] = {
    "approvals:queue": Row(ALL, NOBODY, "the queue"),
    "approvals:arrivals": Row(ALL, NOBODY, "whether something new came"),
    "approvals:pulse": Row(ALL, NOBODY, "what has happened since the page was made"),
    "approvals:hold": Row(
        ALL, ALL, "who reads it; whoever may decide it holds it, gives it back, takes it over"
    ),
    "approvals:proposal": Row(ALL, NOBODY, "one proposal"),
    "approvals:open_part": Row(NOBODY, ALL, "open a folded part (changes nothing)"),
    "approvals:evidence": Row(ALL, NOBODY, "one piece of evidence, in pages, as far as the role is shown it"),
    "approvals:bar": Row(ALL, NOBODY, "the bar of one proposal"),
    "approvals:alike": Row(REVIEWER, REVIEWER, "decide what is alike and of low risk in one list"),
    "approvals:decide": Row(NOBODY, REVIEWER, "decide, in the group that is asked, never on one's own"),
    "approvals:sign": Row(NOBODY, REVIEWER, "get what one's passkey signs of an approval (changes nothing)"),
    "approvals:questions": Row(ALL, NOBODY, "what colleagues ask oneself"),
    "approvals:afterwards": Row(ALL, NOBODY, "automatic actions to look at afterwards"),
    "approvals:sample": Row(ALL, NOBODY, "one of them"),
    "approvals:say": Row(NOBODY, REVIEWER, "say afterwards that it was fine or wrong, never of one's own"),
    "approvals:ask": Row(REVIEWER, REVIEWER, "ask a question about it"),
    "approvals:answer": Row(NOBODY, ALL, "answer what one was asked"),
    "approvals:lift": Row(REVIEWER, REVIEWER, "lift a remembered rejection"),
    "edits:edit": Row(REVIEWER, REVIEWER, "change arguments, in a new version that others approve"),
    "progress": Row(ALL, NOBODY, "how far an action is"),
    "workflows:runs": Row(ALL, NOBODY, "the runs"),
    "workflows:run": Row(ALL, NOBODY, "one run"),
    "workflows:cancel": Row(FIXERS, FIXERS, "cancel a run"),
    "workflows:outcome": Row(FIXERS, FIXERS, "correct an outcome"),
    "workflows:receipt": Row(ALL, NOBODY, "a receipt"),
    "workflows:document": Row(ALL, FIXERS, "open a protected document, which is written down"),
    "workflows:holds": Row(ALL, FIXERS, "the freezes; freeze"),
    "workflows:hold": Row(ALL, NOBODY, "one freeze"),
    "workflows:freezes_over": Row(ALL, NOBODY, "what holds a proposal"),
    "workflows:lift": Row(FIXERS, FIXERS, "lift a freeze"),
    "workflows:ask_again": Row(NOBODY, FIXERS, "ask again about what lapsed"),
    "repair:packets": Row(ALL, NOBODY, "what stopped"),
    "repair:causes": Row(ALL, NOBODY, "what keeps coming back"),
    "repair:packet": Row(ALL, NOBODY, "one packet"),
    "repair:choice": Row(
        FIXERS, FIXERS, "make a choice about a stopped run, never about the outcome of one's own"
    ),
    "repair:bulk": Row(FIXERS, FIXERS, "the same for several of them"),
    "repair:of_run": Row(ALL, NOBODY, "the packets of a run"),
    "repair:replay": Row(FIXERS, FIXERS, "replay a run, never repeating what it did"),
    "repair:replays": Row(ALL, NOBODY, "the replays of a run"),
    "repair:compare": Row(ALL, NOBODY, "two runs beside each other, values by their class"),
    "repair:follow": Row(
        FIXERS, FIXERS, "take an effect back, or propose the rest of it, from its run's page"
    ),
    "repair:packet_json": Row(NOBODY, ALL, "take a packet along, signed; which is written down"),
    "repair:packet_markdown": Row(NOBODY, ALL, "take a packet along as text, which is written down"),
    "repair:incidents": Row(LEADERS, NOBODY, "the incidents"),
    "repair:new_incident": Row(FIXERS, FIXERS, "find what something touched; open an incident of it"),
    "repair:incident": Row(LEADERS, NOBODY, "one incident, with the runs that it touched"),
    "repair:compare_incident": Row(LEADERS, NOBODY, "two of its runs beside each other"),
    "repair:incident_report": Row(LEADERS, NOBODY, "its report"),
    "repair:incident_json": Row(NOBODY, LEADERS, "take the report along, signed; which is written down"),
    "repair:incident_markdown": Row(NOBODY, LEADERS, "take the report along as text, which is written down"),
    "repair:describe_incident": Row(FIXERS, FIXERS, "say what is thought of it, and whose it is"),
    "repair:freeze_incident": Row(
        FIXERS, FIXERS, "freeze exactly its runs, or the smallest scope around them"
    ),
    "repair:mark_incident": Row(NOBODY, FIXERS, "say of its runs what was found"),
    "repair:look_incident": Row(NOBODY, FIXERS, "look for more runs that fit"),
    "repair:note_incident": Row(NOBODY, FIXERS, "add a note"),
    "repair:contain_incident": Row(NOBODY, FIXERS, "say that the harm is stopped"),
    "repair:close_incident": Row(FIXERS, FIXERS, "close it, with its cause"),
    "repair:runbook": Row(ALL, NOBODY, "the runbook of a workflow"),
    "explorer:let_through": Row(HISTORY, NOBODY, "what somebody or some rule let through"),
    "explorer:run": Row(HISTORY, NOBODY, "the whole story of a run"),
    "lists:take": Row(NOBODY, HISTORY, "take a list of events along as a file, which is written down"),
    "explorer:take": Row(NOBODY, HISTORY, "the same of what was let through"),
    "audit:history": Row(HISTORY, NOBODY, "the history"),
    "audit:event": Row(HISTORY, NOBODY, "one event"),
    "audit:check": Row(NOBODY, HISTORY, "recompute the chain, which is written down"),
    "audit:event_receipt": Row(HISTORY, NOBODY, "a receipt of an event, to keep"),
    "audit:decision_receipt": Row(ALL, NOBODY, "a receipt of a decision, to keep"),
    "audit:bundle": Row(NOBODY, HISTORY, "take the history along as a file, which is written down"),
    "people:people": Row(HISTORY, NOBODY, "the people"),
    "people:new_person": Row(ADMIN, ADMIN, "add a person"),
    "people:person": Row(HISTORY, NOBODY, "one person"),
    "people:roles": Row(ADMIN, ADMIN, "change roles"),
    "people:person_groups": Row(ADMIN, ADMIN, "change groups"),
    "people:deactivate": Row(ADMIN, ADMIN, "deactivate a person"),
    "people:reactivate": Row(ADMIN, ADMIN, "let a person back in"),
    "people:link": Row(ADMIN, ADMIN, "say that two accounts are one person"),
    "people:unlink": Row(ADMIN, ADMIN, "say that an account is a person of its own, never of one's own"),
    "people:duty": Row(ADMIN, ADMIN, "say what a person answers for"),
    "people:end_duty": Row(ADMIN, ADMIN, "end that"),
    "people:absences": Row(HISTORY, NOBODY, "when somebody is away, and who decides in their stead"),
    "people:note_absence": Row(
        ADMIN, ADMIN, "say it for somebody; everybody says it for themself under their account"
    ),
    "people:end_absence": Row(ADMIN, ADMIN, "take it back"),
    "people:hours": Row(HISTORY, NOBODY, "working hours, and who is away"),
    "people:set_hours": Row(ADMIN, ADMIN, "set the working hours of a group or of all"),
    "people:clear_hours": Row(ADMIN, ADMIN, "clear them"),
    "people:groups": Row(HISTORY, NOBODY, "the groups"),
    "people:new_group": Row(ADMIN, ADMIN, "make a group"),
    "people:group": Row(HISTORY, NOBODY, "one group"),
    "people:agents": Row(HISTORY, NOBODY, "the automations"),
    "people:new_agent": Row(ADMIN, ADMIN, "make an automation"),
    "people:agent": Row(HISTORY, NOBODY, "one automation"),
    "people:bounds": Row(ADMIN, ADMIN, "bound an automation"),
    "people:deactivate_agent": Row(ADMIN, ADMIN, "stop an automation"),
    "people:reactivate_agent": Row(ADMIN, ADMIN, "let it work again"),
    "people:tokens": Row(HISTORY, NOBODY, "the tokens, by their beginnings"),
    "people:issue": Row(ADMIN, ADMIN, "issue a token"),
    "people:rotate": Row(ADMIN, ADMIN, "rotate a token"),
    "people:revoke": Row(ADMIN, ADMIN, "revoke a token"),
    "endpoints:endpoints": Row(HISTORY, NOBODY, "the endpoints for webhooks"),
    "endpoints:new": Row(ADMIN, ADMIN, "make an endpoint"),
    "endpoints:endpoint": Row(HISTORY, NOBODY, "one endpoint"),
    "endpoints:rotate": Row(ADMIN, ADMIN, "change its secret"),
    "endpoints:deactivate": Row(ADMIN, ADMIN, "end it"),
    "endpoints:callbacks": Row(HISTORY, NOBODY, "where runs may call back"),
    "endpoints:new_callback": Row(ADMIN, ADMIN, "register such a callback"),
    "endpoints:callback": Row(HISTORY, NOBODY, "one callback"),
    "endpoints:rotate_callback": Row(ADMIN, ADMIN, "change its secret"),
    "endpoints:send_again": Row(ADMIN, ADMIN, "send again what was given up"),
    "endpoints:deactivate_callback": Row(ADMIN, ADMIN, "end it"),
    "contents:contents": Row(HISTORY, NOBODY, "what is kept, and the legal holds"),
    "contents:find": Row(ADMIN, ADMIN, "look for a word in what is kept, which is written down"),
    "contents:erase": Row(ADMIN, ADMIN, "erase what runs held"),
    "contents:erase_webhooks": Row(ADMIN, ADMIN, "erase webhooks that were not understood"),
    "contents:new_hold": Row(ADMIN, ADMIN, "place a legal hold"),
    "contents:lift_hold": Row(ADMIN, ADMIN, "lift it"),
    "contents:hold_run": Row(ADMIN, ADMIN, "keep what one run holds"),
    "contents:release_run": Row(ADMIN, ADMIN, "end that"),
    "notify:notices": Row(ALL, NOBODY, "what one was told"),
    "notify:read_all": Row(NOBODY, ALL, "mark it all as read"),
    "notify:read": Row(NOBODY, ALL, "mark one as read"),
    "notify:go": Row(NOBODY, ALL, "mark one as read, and open it"),
    "notify:link": Row(ALL, NOBODY, "follow a link of one's own mails"),
    "telling:channels": Row(HISTORY, NOBODY, "the ways of telling people"),
    "telling:failures": Row(HISTORY, NOBODY, "what could not be told"),
    "telling:again": Row(ADMIN, ADMIN, "send one of these again"),
    "telling:test_mail": Row(NOBODY, ADMIN, "send a test mail to oneself"),
    "telling:new": Row(ADMIN, ADMIN, "register a chat room"),
    "telling:new_address": Row(ADMIN, ADMIN, "register who is mailed checkpoints of the history"),
    "telling:send_checkpoint": Row(NOBODY, ADMIN, "send the newest checkpoint to everybody who keeps them"),
    "telling:destination": Row(HISTORY, NOBODY, "one chat room"),
    "telling:test": Row(NOBODY, ADMIN, "send a test there"),
    "telling:deactivate": Row(ADMIN, ADMIN, "end it"),
    "people:organisation": Row(HISTORY, NOBODY, "the organisation, its limits and posture"),
    "people:break_glass": Row(ADMIN, ADMIN, "switch break-glass on"),
    "people:break_glass_off": Row(ADMIN, ADMIN, "switch it off"),
}
"""The pages of a tenant. One's own account, sign-in and Django's admin have no roles: `OWN` knows them by name."""

SESSIONS: Final[dict[str, Row]] = {
    "api-v1:get_view": Row(PERSONAL, NOBODY, "the view document of a proposal, with its receipts"),
    "api-v1:decide": Row(NOBODY, REVIEWER, "decide"),
    "api-v1:say": Row(NOBODY, FIXERS, "say what became of an unknown outcome, never of one's own"),
    "api-v1:again": Row(NOBODY, FIXERS, "ask again"),
}
"""Routes of the API for signed-in people: any ``Authorization`` header is refused there."""

TOKENS: Final[dict[str, tuple[str, Scope | None]]] = {
    "api-v1:list_operations": ("the installed operations", None),
    "api-v1:get_operation": ("one operation", None),
    "api-v1:list_workflows": ("the installed workflows", None),
    "api-v1:list_keys": ("the public keys of receipts", None),
    "api-v1:start": ("start runs", Scope.RUNS_WRITE),
    "api-v1:list_runs": ("list runs", Scope.RUNS_READ),
    "api-v1:get_run": ("read a run", Scope.RUNS_READ),
    "api-v1:supply": ("supply data", Scope.RUNS_WRITE),
    "api-v1:cancel": ("cancel a run", Scope.RUNS_WRITE),
    "api-v1:get_command": ("read what was attempted", Scope.RUNS_READ),
    "api-v1:get_receipt": ("read a receipt", Scope.RUNS_READ),
    "api-v1:get_result": ("read a result", Scope.RESULTS_READ),
    "api-v1:list_proposals": ("list proposals", Scope.PROPOSALS_READ),
    "api-v1:get_proposal": ("read a proposal", Scope.PROPOSALS_READ),
    "api-v1:propose": ("propose an action", Scope.PROPOSALS_WRITE),
    "api-v1:answer_question": ("answer a reviewer's question", Scope.PROPOSALS_ANSWER),
    "api-v1:withdraw": ("withdraw one's own proposal", Scope.PROPOSALS_WRITE),
    "api-v1:list_events": ("read the history", Scope.AUDIT_READ),
    "api-v1:get_event_receipt": ("a receipt of an event: of what the token may read otherwise", None),
    "api-v1:get_bundle": ("take the history along; contracts with `proposals:read` too", Scope.AUDIT_READ),
}
"""Routes of the API for automations: with a token of the scope. No scope decides, attests, lifts or manages."""

OPEN: Final = {"api-v1:deliver", "api-v1:openapi-json", "api-v1:api-root", "home"}
"""Signed webhooks, the document of the API, and the way to the queue: without a session and without a token."""
OWN: Final = (
    "sign-in",
    "sign-out",
    "account",
    "mfa",
    "usersessions",
    "socialaccount",
    "end-",
    "confirm",
    "openid",
    "oidc",
)
"""Coming in, going out, and one's own account: by the beginnings of their names. Everybody, for themself."""


def document() -> str:
    """`docs/access.md`."""
    head = (
        "| what | address | " + " | ".join(role.label for role in Role) + " |\n|---|---|" + "---|" * len(Role)
    )
    parts = [_INTRO, "## Pages\n", head, *(_line(name, row) for name, row in PAGES.items())]
    parts += ["\n## The API, for signed-in people\n", _PEOPLE_ONLY + "\n", head]
    parts += [_line(name, row) for name, row in SESSIONS.items()]
    parts += ["\n## The API, for automations\n", _BOUNDS + "\n", "| what | route | scope |\n|---|---|---|"]
    parts += [
        f"| {says} | `{name}` | {f'`{scope.value}`' if scope else 'any token'} |"
        for name, (says, scope) in TOKENS.items()
    ]
    return "\n".join(parts) + "\n" + _RULES


def _line(name: str, row: Row) -> str:
    cells = [
        " ".join(way for way, roles in (("reads", row.get), ("acts", row.post)) if role in roles)
        for role in Role
    ]
    return f"| {row.says} | `{name}` | " + " | ".join(cell or "–" for cell in cells) + " |"


_INTRO: Final = """# Who may ask for what

Written by `./placet access_matrix` from `config/access_matrix.py`; a test asks every address in every role.
*reads*: the page is shown. *acts*: what is sent there is carried out, if nothing else forbids it.
"""
_PEOPLE_ONLY: Final = (
    "An `Authorization` header is refused on these routes, with a session beside it or not (`token_cannot_decide`, "
    "`token_cannot_attest`), and on every page where something is changed."
)
_BOUNDS: Final = (
    "A token has the scopes that it was issued with, and its automation may be bounded to workflows and operations: "
    "what is outside is refused (`not_allowed_for_agent`) and stands in the history."
)
_RULES: Final = """
## What no role allows

- Nobody decides on their own proposal, or says what became of it: not the requester, not the person an automation acts
  for, not who answers for it, not the owner of the workflow, not who wrote the version of the policy that is bound.
  All accounts of a person count as that person, and an admin is a person too.
- Two people are two people: two accounts of one person have one vote and one word.
- A token decides nothing, whatever its scopes, on any route.
- A lost role, a left group, a deactivated account count at once: on pages that are open, and for what was decided
  and is not sent yet, which goes back to review as a new version.
- The last active admin of an organisation stays one, on the pages. The command line of the installation may do it.
- Who changes their own roles says why, and the history says that it was their own.

## A team of one

*Break-glass* lets one person decide on their own proposals, and say what became of them, until a day that is named (90
days at most). It is off until an admin who has just proved who they are, or the command line (`./placet tenant
break-glass`), switches it on with a reason. While it is on, every page says so; each decision under it is marked in its
row, its event and its receipt, for good. Where two people are asked, it still takes two people.
"""
