"""The public authoring API: all that an app with workflows may import from here."""

from common.fields import Arguments, DataClass, arg
from workflows.classify import Observation, OutcomeTable
from workflows.definitions import Contract, ExceptionCase, Retry, Stage, StageContext, Workflow
from workflows.enums import OnExpiry, StepKind
from workflows.operations import (
    Affected,
    Call,
    Facts,
    Finding,
    Operation,
    OperationRefused,
    Policy,
    Site,
    Test,
    Verdict,
)
from workflows.registry import register
from workflows.results import (
    CredentialRefused,
    Done,
    EvidencePiece,
    Fail,
    Finish,
    Malformed,
    NotAllowed,
    Propose,
    RateLimited,
    SourceDown,
    StageResult,
    ToPerson,
    WaitForData,
)

__all__ = [
    "Affected",
    "Arguments",
    "Call",
    "Contract",
    "CredentialRefused",
    "DataClass",
    "Done",
    "EvidencePiece",
    "ExceptionCase",
    "Facts",
    "Fail",
    "Finding",
    "Finish",
    "Malformed",
    "NotAllowed",
    "Observation",
    "OnExpiry",
    "Operation",
    "OperationRefused",
    "OutcomeTable",
    "Policy",
    "Propose",
    "RateLimited",
    "Retry",
    "Site",
    "SourceDown",
    "Stage",
    "StageContext",
    "StageResult",
    "StepKind",
    "Test",
    "ToPerson",
    "Verdict",
    "WaitForData",
    "Workflow",
    "arg",
    "register",
]
