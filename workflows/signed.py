"""Which actions only passkeys approve: as the operation declares it, and the installation."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from approvals.signing import demands
from workflows.contracts import Draft, bound_arguments
from workflows.operations import Operation


def to_be_signed(draft: Draft, risk: int) -> bool:
    """Whether the contract that is being made says so: by amount, or from a risk of the verdict on."""
    operation = draft.operation
    least = operation.signed_from_risk or settings.PLACET_SIGNED_RISK
    return bool(least and risk >= least) or operation.needs_signature(draft.arguments)


def must_have_signatures(operation: Operation[Any], contract: Mapping[str, Any]) -> bool:
    """Whether nothing is sent without signatures: the contract says so, or the code does, whatever the contract says.

    Of operations that declare nothing no arguments are read.
    """
    if demands(contract):
        return True
    own, base = type(operation), Operation
    declares = operation.signed_from is not None or own.needs_signature is not base.needs_signature
    return declares and operation.needs_signature(bound_arguments(operation, contract))


def check_declared_signing(operation: type[Operation[Any]]) -> None:
    """Raises TypeError for a limit below zero, or a risk that no verdict has."""
    limit, risk = operation.signed_from, operation.signed_from_risk
    if (limit is not None and limit < 0) or (risk is not None and risk < 1):
        least = limit if limit is not None else risk
        raise TypeError(
            f"{operation.__name__} lets approvals be signed from {least} on: there is no such limit."
        )
