"""Valid arguments of every transition, for the tests that make a row move."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model

from approvals.models import Proposal
from common.ids import new_id
from repair.models import RepairCause, RepairPacket
from repair.models_incidents import Incident
from workflows.enums import Effect, HoldReason, OnExpiry, SettledBy, VoidReason, WaitingFor
from workflows.models import Attempt, CallbackCall, Command, Hold, Run, Step

LEASE = timedelta(seconds=30)
DECIDE_WITHIN = timedelta(hours=4)
EXECUTE_WITHIN = timedelta(minutes=10)
_ENDS_OF_A_PROPOSAL = (
    "reject", "request_changes", "expire", "withdraw", "supersede", "invalidate", "consume", "lapse",
)  # fmt: skip


def arguments_of_moves(at: datetime) -> dict[type[Model], dict[str, dict[str, Any]]]:
    """Valid arguments of every transition method, by model and name."""
    ends = {"at": at, "reason": "because"}
    lease = {"token": new_id(), "lease_until": at + LEASE}
    wait = {"for_": WaitingFor.APPROVAL, "wait_id": new_id(), "until": at + DECIDE_WITHIN}
    answered = {"at": at, "outcome": "unknown", "detail": ""}
    return {
        Proposal: {
            "approve": {"at": at, "execute_by": at + EXECUTE_WITHIN},
            **dict.fromkeys(_ENDS_OF_A_PROPOSAL, ends),
        },
        CallbackCall: {
            "deliver": {"at": at},
            "supersede": {"at": at},
            "give_up": {"at": at, "problem": "refused"},
            "send_again": {"at": at},
        },
        Command: {
            "claim": lease,
            "send": {"at": at, "lease_until": at + LEASE},
            "send_again": {"at": at, **lease},
            "free": {"due_at": at},
            "retry_later": {"due_at": at, "code": "throttled"},
            "hold_back": {"reason": HoldReason.ORDER},
            "doubt": {"at": at, "code": "restored", "restored": True},
            "lose_track": {"due_at": at, "code": "no_answer"},
            "confirm": {"at": at, "by": SettledBy.ANSWER, "reference": "re_1", "effect": Effect.HAPPENED},
            "refuse": {"at": at, "code": "refused"},
            "give_up": {"at": at, "by": SettledBy.ANSWER, "code": "tries"},
            "cancel": {"at": at, "by": SettledBy.PERSON},
            "make_void": {"at": at, "reason": VoidReason.LAPSED},
        },
        Attempt: {
            "send": {"at": at},
            "answer": {**answered, "http_status": 200},
            "no_answer": answered,
            "release": {"at": at, "outcome": "not_sent"},
        },
        Step: {
            "start": {"at": at, **lease},
            "resume": {"at": at},
            "release": {"at": at},
            "wait": {**wait, "on_expiry": OnExpiry.MANUAL_QUEUE},
            "complete": {"at": at, "result_ref": None},
            "fail": {"at": at, "code": "failed"},
            "skip": {"at": at},
            "cancel": {"at": at},
        },
        Hold: {
            "try_one": {"at": at, "command_id": new_id()},
            "hold_on": {"until": at, "pause_s": 60},
            "lift": {"at": at, "by": "user:ada", "why": "it is over"},
            "end": {"at": at},
        },
        Run: {"settle": {}},
        Incident: {"contain": {"at": at}, "close": {"at": at, "cause": RepairCause(title="A mistake")}},
        RepairPacket: {
            "take": {},
            "give_back": {},
            "await_second": {},
            "resolve": {"at": at, "how": "done"},
            "abandon": {"at": at, "how": "no"},
        },
    }
