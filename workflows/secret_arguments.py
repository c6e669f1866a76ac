"""Secrets in arguments: the contract holds name and fingerprint, the call gets the value, and nothing else does."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, TypeVar
from uuid import UUID

from common.digests import same, secret_fingerprint
from common.fields import (
    ArgumentError,
    Arguments,
    ArgumentSpec,
    ArgumentsRefused,
    ArgumentType,
    ListType,
    OptionalType,
    SecretRefType,
    StructureType,
)
from common.fields.arguments import Normalized
from common.secret_values import SecretsUnreadable, Values, values_of
from common.strictjson import pointer
from workflows.classify import Observation
from workflows.results import CredentialRefused

T = TypeVar("T")
Path = tuple[str | int, ...]
Change = Callable[[Path, Mapping[str, Any]], Any]

HIDDEN: Final = "(secret)"
_NO_VALUE: Final = "hmac:" + "0" * 64
"""Stands for the fingerprint of a name without a value, until the check refuses that name."""
_MESSAGES: Final = {
    "secret_unknown": "There is no secret of this name.",
    "secret_changed": "The secret of this name has another value than the one of this fingerprint.",
}


@dataclass(frozen=True, slots=True)
class Secrets:
    """Values of a tenant's secrets as they were read at one moment. They stay in memory; no text of it shows them."""

    tenant_id: UUID
    values: Values = field(repr=False)

    def value(self, argument: Mapping[str, str]) -> str:
        """The value that a `SecretRef` argument names, if it is the approved one. Raises CredentialRefused."""
        if self.problem(argument):
            raise CredentialRefused("a secret is gone, or is not the one that was approved")
        return self.values[argument["secret_ref"]].get_secret_value()

    def problem(self, argument: Mapping[str, str]) -> str:
        """Why the argument does not stand for a value that is here: *secret_unknown*, *secret_changed*; or nothing."""
        present = self.fingerprint(argument["secret_ref"])
        if present is None:
            return "secret_unknown"
        return "" if same(present, argument["fingerprint"]) else "secret_changed"

    def fingerprint(self, name: object) -> str | None:
        value = self.values.get(name) if isinstance(name, str) else None
        return secret_fingerprint(self.tenant_id, value.get_secret_value().encode()) if value else None

    def only(self, named: list[Mapping[str, str]]) -> "Secrets":
        """Those that these arguments name."""
        names = {argument["secret_ref"] for argument in named}
        return replace(self, values={name: value for name, value in self.values.items() if name in names})

    def hide(self, said: Any) -> Any:
        """What somebody outside says, without the values: a provider may repeat what it was given."""
        match said:
            case str():
                for value in self.values.values():
                    said = said.replace(value.get_secret_value(), HIDDEN)
                return said
            case Mapping():
                return {self.hide(key): self.hide(value) for key, value in said.items()}
            case list() | tuple():
                return [self.hide(value) for value in said]
            case _:
                return said


NO_SECRETS: Final = Secrets(UUID(int=0), {})


def read_secrets(tenant_id: UUID, tenant: str) -> Secrets:
    """All secrets of the tenant, from the file. Raises CredentialRefused where it cannot be read."""
    try:
        return Secrets(tenant_id, values_of(tenant))
    except SecretsUnreadable as error:
        raise CredentialRefused(str(error)) from None


def secrets_named(
    schema: type[Arguments], arguments: Mapping[str, Any], tenant_id: UUID, tenant: str
) -> Secrets:
    """What a call with these bound arguments may need. Reads nothing where they name no secret."""
    named = secret_refs(schema, arguments)
    return read_secrets(tenant_id, tenant).only(named) if named else NO_SECRETS


def may_name_secrets(schema: type[Arguments]) -> bool:
    return bool(_with_secrets(schema))


def secret_refs(schema: type[Arguments], arguments: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """The `SecretRef` values among normalized arguments, those inside lists and structures too."""
    return [argument for _, argument in _found(schema, arguments)]


def hidden(said: T, secrets: Secrets) -> T:
    """An observation or a finding without the values."""
    if not secrets.values:
        return said
    names = ("reference", "detail", "body", *(("code",) if isinstance(said, Observation) else ()))
    return replace(said, **{name: secrets.hide(getattr(said, name)) for name in names})  # type: ignore[type-var]


# -- proposing ----------------------------------------------------------------------------------------------------


def normalize(schema: type[Arguments], given: Mapping[str, Any], tenant_id: UUID, tenant: str) -> Normalized:
    """The arguments in their one spelling. A secret may be given by its name alone: its fingerprint is ours to say.

    Raises ArgumentsRefused, also for a name that is not known and for the fingerprint of another value; and
    CredentialRefused where the secrets cannot be read.
    """
    if not may_name_secrets(schema):
        return schema.normalize(dict(given))
    secrets = read_secrets(tenant_id, tenant)
    normalized = schema.normalize(_changed(schema, given, (), lambda _, it: _complete(it, secrets)))
    refused = [
        ArgumentError(pointer(path), code, _MESSAGES[code])
        for path, argument in _found(schema, {**normalized.material, **normalized.volatile})
        if (code := secrets.problem(argument))
    ]
    if refused:
        raise ArgumentsRefused(refused)
    return normalized


def _complete(given: Mapping[str, Any], secrets: Secrets) -> Mapping[str, Any]:
    if set(given) != {"secret_ref"}:
        return given
    return {**given, "fingerprint": secrets.fingerprint(given["secret_ref"]) or _NO_VALUE}


def by_name_alone(schema: type[Arguments], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without their secrets' fingerprints, to ask again with the values of today."""
    return _changed(schema, arguments, (), lambda _, it: {"secret_ref": it.get("secret_ref")})


# -- where they stand ---------------------------------------------------------------------------------------------


def _found(schema: type[Arguments], arguments: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    found: list[tuple[Path, Mapping[str, Any]]] = []
    _changed(schema, arguments, (), lambda path, it: found.append((path, it)))
    return iter(found)


@lru_cache(maxsize=256)
def _with_secrets(schema: type[Arguments]) -> tuple[ArgumentSpec, ...]:
    return tuple(spec for spec in schema.specs if _may_hold(spec.kind))


def _may_hold(kind: ArgumentType) -> bool:
    match kind:
        case OptionalType(inner=inner) | ListType(item=inner):
            return _may_hold(inner)
        case StructureType(model=model):
            return bool(_with_secrets(model))
        case _:
            return isinstance(kind, SecretRefType)


def _changed(
    schema: type[Arguments], arguments: Mapping[str, Any], path: Path, change: Change
) -> dict[str, Any]:
    """The arguments with each secret changed; whatever has not the shape of the schema is left as it is."""
    changed = dict(arguments)
    for spec in _with_secrets(schema):
        if spec.name in changed:
            changed[spec.name] = _one(spec.kind, changed[spec.name], (*path, spec.name), change)
    return changed


def _one(kind: ArgumentType, value: Any, path: Path, change: Change) -> Any:
    match kind, value:
        case SecretRefType(), Mapping():
            return change(path, value)
        case OptionalType(inner=inner), _:
            return _one(inner, value, path, change)
        case ListType(item=item), list():
            return [_one(item, one, (*path, at), change) for at, one in enumerate(value)]
        case StructureType(model=model), Mapping():
            return _changed(model, value, path, change)
        case _:
            return value
