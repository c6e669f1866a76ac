"""The installed workflows and operations, found in the apps' ``flows.py``, and the registration of their versions."""

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.utils.module_loading import autodiscover_modules

from common.clock import Clock
from common.db import lock_name
from common.errors import NotFound
from workflows.definitions import Workflow
from workflows.models import Definition
from workflows.operations import Operation

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
    """Class decorator for ``flows.py``: makes a workflow and its operations known."""
    _workflows[workflow.name] = workflow
    for operation in workflow.operations:
        _operations[(operation.name, operation.version)] = operation()
    return workflow


def autodiscover() -> None:
    autodiscover_modules("flows")


def workflow(name: str) -> type[Workflow]:
    try:
        return _workflows[name]
    except KeyError:
        raise UnknownWorkflow() from None


def workflows() -> list[type[Workflow]]:
    return [_workflows[name] for name in sorted(_workflows)]


def operation(name: str, version: int | None = None) -> Operation[Any]:
    """The operation of that name: the given version, or the newest that is installed."""
    versions = [number for known, number in _operations if known == name]
    if not versions or (version is not None and version not in versions):
        raise UnknownOperation()
    return _operations[(name, version if version is not None else max(versions))]


def operations() -> list[Operation[Any]]:
    """The newest installed version of each operation, by name."""
    return [operation(name) for name in sorted({name for name, _ in _operations})]


def known_operations() -> list[tuple[str, int]]:
    """What a worker of this code may claim."""
    return sorted(_operations)


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


def _content_hash(*classes: type[Any]) -> str:
    """Of what the classes do: comments, blank lines and docstrings do not count."""
    digest = hashlib.sha256()
    for source in classes:
        tree = ast.parse(textwrap.dedent(inspect.getsource(source)))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and _is_docstring(body[0]):
                body[:1] = []
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
