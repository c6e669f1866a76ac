"""What a signed-in person settles: what became of an unknown outcome, and what is asked again. No token does either."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from access.auth import Principal, SessionAuth
from approvals.api_schemas import NextAction, next_action_of
from audit.principals import principal_of
from common.clock import db_clock
from common.problems import Problem
from common.strictbody import Body, StrictBody
from workflows.actions.asking_again import ask_again
from workflows.actions.attesting import LONGEST_REASON, LONGEST_REFERENCE, TokenCannotAttest, attest
from workflows.api import WRITE_PROBLEMS, StepKey
from workflows.api_commands import next_action_of as next_of_command
from workflows.api_schemas import example
from workflows.enums import Testimony

_ID = "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"
sessions = Router(tags=["settling"])


class SettlingAuth(SessionAuth):
    """A signed-in person, as on the route that decides; a token is told so in the words of these routes."""

    def __call__(self, request: HttpRequest) -> Principal:
        if "Authorization" in request.headers:
            raise TokenCannotAttest()
        return super().__call__(request)


class AttestationIn(Body):
    """What a person says. *Happened* and *partial* need the provider's own reference of the effect."""

    model_config = example(
        {"says": "happened", "provider_reference": "re_17", "reason": "It stands in the provider's list of refunds."}
    )  # fmt: skip

    says: str = Field(max_length=40, json_schema_extra={"enum": [*Testimony.values]})
    provider_reference: str | None = Field(default=None, max_length=LONGEST_REFERENCE)
    reason: str = Field(max_length=LONGEST_REASON)


class AttestedOut(BaseModel):
    """*Recorded*: ``given`` of the ``needed`` people say so, and nothing has moved. *Settled*: where it stands now."""

    model_config = example(
        {
            "result": "settled", "says": "happened", "given": 1, "needed": 1, "command_id": _ID, "status": "confirmed",
            "effect": "happened", "state_version": 5, "next_action": "fetch_result", "retry_after": None,
        }
    )  # fmt: skip

    result: Literal["recorded", "settled"]
    says: str
    given: int
    needed: int
    command_id: UUID
    status: str
    effect: str
    state_version: int
    next_action: NextAction
    retry_after: int | None


class AskAgainIn(Body):
    """Nothing needs to be said: what is asked again stands in the step's last proposal."""

    model_config = Body.model_config | example({})


class AskedAgainOut(BaseModel):
    """The new version that people are asked about. ``same_key``: it keeps the idempotency key of the old one."""

    model_config = example(
        {
            "proposal_id": _ID, "supersedes": _ID, "run_id": _ID, "step": "refund", "version": 2, "status": "pending",
            "needed": 1, "decide_by": "2026-09-19T17:52:08Z", "same_key": True, "state_version": 1,
            "next_action": "wait", "retry_after": 5,
        }
    )  # fmt: skip

    proposal_id: UUID
    supersedes: UUID
    run_id: UUID
    step: str
    version: int
    status: str
    needed: int
    decide_by: datetime
    same_key: bool
    state_version: int
    next_action: NextAction
    retry_after: int | None


@sessions.post(
    "/commands/{command_id}/attestations",
    response={frozenset({200, 202}): AttestedOut, WRITE_PROBLEMS: Problem},
    summary="Say what became of an unknown outcome",
)
def say(
    request: HttpRequest, command_id: UUID, body: Annotated[AttestationIn, StrictBody()]
) -> Status[dict[str, Any]]:
    """200 ``settled``; 202 ``recorded`` where the operation's limit asks for a second person, who must say the same.

    For operators, workflow owners and admins who are not on the proposer's side. Any Authorization header is refused
    with ``token_cannot_attest``: no token ever attests.
    """
    principal = principal_of(request)
    attested = attest(
        tenant_id=principal.tenant.pk, command_id=command_id, says=body.says, reason=body.reason,
        reference=body.provider_reference or "", by=principal.actor, clock=db_clock,
    )  # fmt: skip
    command = attested.command
    action, retry_after = next_of_command(command)
    return Status(200 if attested.settled else 202, {
        "result": "settled" if attested.settled else "recorded", "says": body.says, "given": attested.given,
        "needed": attested.needed, "command_id": command.pk, "status": command.status, "effect": command.effect,
        "state_version": command.state_version, "next_action": action, "retry_after": retry_after,
    })  # fmt: skip


@sessions.post(
    "/runs/{run_id}/steps/{step}/ask-again", response={201: AskedAgainOut, WRITE_PROBLEMS: Problem},
    summary="Ask again about what lapsed",
)  # fmt: skip
def again(
    request: HttpRequest, run_id: UUID, step: StepKey, body: Annotated[AskAgainIn, StrictBody()]
) -> Status[dict[str, Any]]:
    """201 with a new version of the step's last proposal, by today's policy and facts.

    For operators, workflow owners and admins. Any Authorization header is refused with ``token_cannot_attest``.
    """
    principal = principal_of(request)
    proposal = ask_again(
        tenant_id=principal.tenant.pk, run_id=run_id, step=step, by=principal.actor, clock=db_clock
    )
    old = proposal.supersedes
    assert old is not None
    action, retry_after = next_action_of(proposal.status, proposal.mode)
    same = ("run_id", "step", "version", "status", "needed", "decide_by", "state_version")
    return Status(201, {name: getattr(proposal, name) for name in same} | {
        "proposal_id": proposal.pk, "supersedes": old.pk, "next_action": action, "retry_after": retry_after,
        "same_key": proposal.idempotency_key == old.idempotency_key,
    })  # fmt: skip
