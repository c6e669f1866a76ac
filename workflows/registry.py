"""The installed workflows and operations, found in the apps' ``flows.py``, and the registration of their versions."""

import ast
import hashlib
import inspect
import textwrap
import threading
from collections.abc import Iterator
from typing import Any, Final

from django.db import transaction
from django.utils.module_loading import autodiscover_modules

from approvals.models import Proposal
from common.clock import Clock
from common.db import lock_name
from common.errors import NotFound
from common.fields import DataClass
from common.fields.parsers import check_can_be_shown
from workflows.counteractions import check_follow_ups
from workflows.definitions import GONE, Contract, Workflow, after_effect
from workflows.models import Definition, Run
from workflows.modes import check_declared
from workflows.operations import Operation
from workflows.signed import check_declared_signing

_workflows: dict[str, type[Workflow]] = {}
_operations: dict[tuple[str, int], Operation[Any]] = {}


class UnknownWorkflow(NotFound):
    """No workflow of that name is installed."""

    code = "unknown_workflow"


class UnknownOperation(NotFound):
    """No operation of that name and version is installed."""

    code = "unknown_operation"


class ChangedUnderOldNumber(Exception):
    """A schema, display or rule was changed without a new version number: approvals would bind to something else."""


def register(workflow: type[Workflow]) -> type[Workflow]:
    """Class decorator for ``flows.py``: makes a workflow and its operations known.

    Raises TypeError for an operation that reviewers could not be shown whole, or whose counter-action could not be
    proposed; ValueError for a mode of review that the workflow's stage does not allow.
    """
    check_declared(workflow.name, workflow.stage, workflow.review)
    check_follow_ups(workflow)
    for operation in workflow.operations:
        _check_editable(operation)
        check_declared_signing(operation)
        check_can_be_shown(operation.arguments)
    _workflows[workflow.name] = workflow
    for operation in workflow.operations:
        _operations[(operation.name, operation.version)] = operation()
    return workflow


def _check_editable(operation: type[Operation[Any]]) -> None:
    """Only what is bound can be changed in a new version; a secret is known by its name alone."""
    may = {
        spec.name for spec in operation.arguments.specs
        if spec.material and spec.data_class is not DataClass.SECRET
    }  # fmt: skip
    unknown = sorted(set(operation.editable) - may)
    if unknown:
        raise TypeError(
            f"{operation.__name__} lets reviewers change what is no bound argument of it: {unknown}."
        )


def autodiscover() -> None:
    autodiscover_modules("flows")


def workflow(name: str) -> type[Workflow]:
    try:
        return _workflows[name]
    except KeyError:
        raise UnknownWorkflow() from None


def installed(name: str) -> type[Workflow] | None:
    """The workflow, or None where a release took it away while runs of it were left."""
    return _workflows.get(name)


def contract_of(name: str) -> Contract:
    """What the workflow promises; of one that is no longer installed, what its runs need to end in order."""
    flow = installed(name)
    return flow.contract if flow is not None else GONE


def promised(run: Run) -> Contract:
    """What this very run promises: of what people proposed after an effect, not all that its workflow does."""
    contract = contract_of(run.workflow)
    return after_effect(contract, run.kind) if run.is_follow_up else contract


def workflows() -> list[type[Workflow]]:
    return [_workflows[name] for name in sorted(_workflows)]


def operation(name: str, version: int | None = None) -> Operation[Any]:
    """The operation of that name: the given version, or the newest that is installed."""
    versions = [number for known, number in _operations if known == name]
    if not versions or (version is not None and version not in versions):
        raise UnknownOperation()
    return _operations[(name, version if version is not None else max(versions))]


def editable(proposal: Proposal) -> tuple[str, ...]:
    """The arguments that a reviewer may change in a new version, by the operation of today; none of one gone."""
    flow = installed(proposal.workflow)
    if flow is None or proposal.operation not in {known.name for known in flow.operations}:
        return ()
    return operation(proposal.operation).editable


def operations() -> list[Operation[Any]]:
    """The newest installed version of each operation, by name."""
    return [operation(name) for name in sorted({name for name, _ in _operations})]


def names() -> tuple[list[str], list[str]]:
    """The names of the installed workflows, and of the installed operations."""
    return sorted(_workflows), sorted({name for name, _ in _operations})


def knows(name: str, version: int) -> bool:
    """Whether this code has that version of the operation."""
    return (name, version) in _operations


def known_operations() -> list[tuple[str, int]]:
    """What a worker of this code may claim."""
    return sorted(_operations)


def known_names() -> list[str]:
    """The same in words: ``refunds.issue@1``."""
    return [f"{name}@{version}" for name, version in known_operations()]


def limited_providers() -> list[str]:
    """The providers of which an operation limits the calls at once, in one order for everybody who locks them."""
    return sorted({known.provider for known in _operations.values() if known.most_in_flight is not None})


def most_in_flight(provider: str) -> int | None:
    """The smallest limit of calls at once that an operation of this provider declares; None: no limit."""
    limits = [
        known.most_in_flight for known in _operations.values()
        if known.provider == provider and known.most_in_flight is not None
    ]  # fmt: skip
    return min(limits, default=None)


def definitions() -> Iterator[tuple[str, str, int, str]]:
    """(kind, name, version, content hash) of everything that is installed."""
    for flow in workflows():
        yield "workflow", flow.name, flow.version, _content_hash(flow)
    for name, version in known_operations():
        known = _operations[(name, version)]
        yield "operation", name, version, _content_hash(type(known), type(known).arguments)
    for policy in {known.policy.name: known.policy for known in operations()}.values():
        yield "policy", policy.name, policy.version, _content_hash(type(policy))


_parsing: Final = threading.Lock()
"""`ast.parse` in several threads at once may raise SystemError in CPython 3.11: they share the depth it counts."""


def _content_hash(*classes: type[Any]) -> str:
    """Of what the classes do: comments, blank lines and docstrings do not count, nor does what a reviewer may change,
    what may be proposed after an effect, or what packets say of the provider. That changes nothing of what an approval
    binds to: an edit is a new version, and a compensation an action of its own, each judged anew.
    """
    digest = hashlib.sha256()
    for source in classes:
        with _parsing:
            tree = ast.parse(textwrap.dedent(inspect.getsource(source)))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and _is_docstring(body[0]):
                body[:1] = []
            if isinstance(node, ast.ClassDef):
                node.body = [statement for statement in node.body if not _binds_nothing(statement)]
        digest.update(repr(shape_of(tree)).encode())
    return digest.hexdigest()


def shape_of(node: Any) -> Any:
    """A syntax tree as plain lists that are the same in each version of Python, as those of `ast.dump` are not: fields
    without a value, which newer versions add or leave out, do not count.
    """
    if isinstance(node, ast.AST):
        fields = ((name, shape_of(value)) for name, value in ast.iter_fields(node))
        return [type(node).__name__, *((name, value) for name, value in fields if value not in (None, []))]
    if isinstance(node, list):
        return [shape_of(item) for item in node]
    return None if node is None else repr(node)


_BINDS_NOTHING: Final = frozenset(
    {"editable", "counter", "counter_from", "counter_arguments", "remainder", "account"}
)


def _binds_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in _BINDS_NOTHING
    named = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(name, ast.Name) and name.id in _BINDS_NOTHING for name in named)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def register_definitions(*, clock: Clock) -> list[str]:
    """Write down every installed version; returns those that are new.

    Raises ChangedUnderOldNumber. A newer version becomes current under an exclusive lock, so that a transaction that
    commits ``sent`` under the older one either ends before or sees the newer. An older one never becomes current
    again: a worker of old code finds itself outdated, and says so.
    """
    return [f"{kind} {name}@{version}" for kind, name, version, content in definitions()
            if _register_one(kind, name, version, content, clock)]  # fmt: skip


@transaction.atomic
def _register_one(kind: str, name: str, version: int, content: str, clock: Clock) -> bool:
    lock_name(
        f"definition/{kind}/{name}"
    )  # two processes that start together must not both write the same version
    rows = list(Definition.objects.select_for_update().filter(kind=kind, name=name).order_by("version"))
    same = next((row for row in rows if row.version == version), None)
    if same is not None:
        if same.content_hash != content:
            raise ChangedUnderOldNumber(
                f"{kind} {name} was changed under version {version}: raise its version"
            )
        return False
    newest = not rows or version > rows[-1].version
    if newest:
        Definition.objects.filter(kind=kind, name=name, is_current=True).update(is_current=False)
    Definition.objects.create(
        kind=kind, name=name, version=version, content_hash=content, registered_at=clock(), is_current=newest
    )
    return True
