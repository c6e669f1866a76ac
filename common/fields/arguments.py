"""Operation schemas: a pydantic model whose fields are typed arguments.

class RefundArguments(Arguments):
    order: Identifier = arg(label="Order", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    note: Text = arg("", label="Note for the reviewer", data_class="personal", material=False)
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from common.digests import content_hash
from common.fields.base import ArgumentSpec, ArgumentType, DataClass
from common.fields.money import CurrencyType, MoneyType
from common.fields.secrets import SecretRefType
from common.fields.structures import ListType, OptionalType, StructureType, UnknownType
from common.strictjson import JsonRefused, JsonValue, parse, pointer, strict


@dataclass(frozen=True, slots=True)
class ArgumentError:
    """One thing wrong with one argument. `path` is a JSON pointer; the message never quotes the value."""

    path: str
    code: str
    message: str


class ArgumentsRefused(ValueError):
    """The arguments do not fit the operation's schema; `errors` is never empty."""

    def __init__(self, errors: list[ArgumentError]) -> None:
        super().__init__("; ".join(f"{error.path}: {error.code}" for error in errors))
        self.errors = errors

    @property
    def code(self) -> str:
        """The code of the first error, for callers that report one."""
        return self.errors[0].code


@dataclass(frozen=True, slots=True)
class Normalized:
    """Arguments in their one spelling: what the contract binds, and what it does not."""

    material: dict[str, JsonValue]
    volatile: dict[str, JsonValue]


class Arguments(BaseModel):
    """Base of every operation's arguments: unknown fields are refused, defaults are written out.

    A default is materialized before hashing, so that a later change of it cannot change an approved action.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_default=True)

    specs: ClassVar[tuple[ArgumentSpec, ...]] = ()
    """The declared arguments in their order, which is the order on the page."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.specs = tuple(_spec(cls, name, info) for name, info in cls.model_fields.items())

    @model_validator(mode="after")
    def _scale_money(self) -> Self:
        attributes = {spec.name: spec.attribute for spec in type(self).specs}
        for spec in type(self).specs:
            if spec.currency:
                currency = getattr(self, attributes[spec.currency])
                # The model is frozen for everybody else; this is the last step of making it.
                self.__dict__[spec.attribute] = _scaled(spec, getattr(self, spec.attribute), currency)
        return self

    @classmethod
    def normalize(cls, raw: dict[str, Any]) -> Normalized:
        """The arguments in their one spelling, or ArgumentsRefused with every error found."""
        try:
            model = cls.model_validate(strict(raw))
        except JsonRefused as refused:
            raise ArgumentsRefused([ArgumentError(refused.path, refused.code, refused.message)]) from refused
        except ValidationError as invalid:
            raise ArgumentsRefused(_errors(invalid)) from invalid
        values = model.model_dump(mode="json", by_alias=True)
        return Normalized(
            material={spec.name: values[spec.name] for spec in cls.specs if spec.material},
            volatile={spec.name: values[spec.name] for spec in cls.specs if not spec.material},
        )

    @classmethod
    def normalize_bytes(cls, raw: bytes) -> Normalized:
        """The same from the bytes of a request."""
        try:
            return cls.normalize(parse(raw))  # type: ignore[arg-type]  # the limits admit objects only
        except JsonRefused as refused:
            code = _in_words_of_the_field(cls, refused)
            raise ArgumentsRefused([ArgumentError(refused.path, code, refused.message)]) from refused

    @classmethod
    def schema_document(cls) -> dict[str, Any]:
        """JSON Schema for agents and integrators; `x-placet-*` say what is material and who may see what."""
        document = cls.model_json_schema()
        document["x-placet-material"] = [spec.name for spec in cls.specs if spec.material]
        return document

    @classmethod
    def content_hash_source(cls) -> dict[str, Any]:
        """What must not change under one version number: the schema, and how each value is shown.

        The names and docstrings of classes are left out; they mean nothing to a caller.
        """
        schema = cls.schema_document()
        for described in (schema, *schema.get("$defs", {}).values()):
            described.pop("title", None)
            described.pop("description", None)
        shown = {f"{path}:{kind.name}": kind.display_version for path, kind in kinds_of(cls)}
        return {"schema": schema, "display": shown}

    @classmethod
    def content_hash(cls) -> str:
        """`sha256:…` of `content_hash_source`."""
        return content_hash(cls.content_hash_source())


def _spec(model: type[Arguments], name: str, info: FieldInfo) -> ArgumentSpec:
    extra = info.json_schema_extra
    if not isinstance(extra, dict) or "x-placet-data-class" not in extra:
        raise TypeError(
            f"{model.__name__}.{name} is not declared with arg(), so its data class is not known."
        )
    kind = _kind(Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation)
    _check_nested(model, name, kind)
    data_class = DataClass(str(extra["x-placet-data-class"]))
    if isinstance(_innermost(kind), SecretRefType):
        data_class = DataClass.SECRET
    elif data_class is DataClass.SECRET:
        raise TypeError(
            f"{model.__name__}.{name} is secret, so it is a SecretRef: its value is in no contract."
        )
    return ArgumentSpec(
        name=info.alias or name,
        attribute=name,
        label=str(extra["x-placet-label"]),
        data_class=data_class,
        material=bool(extra["x-placet-material"]),
        kind=kind,
        currency=_currency_of(model, name, kind, extra.get("x-placet-currency")),
    )


def _check_nested(model: type[Arguments], name: str, kind: ArgumentType) -> None:
    """Only whole arguments can be left out of what is signed, not members of one."""
    inner = _innermost(kind)
    if isinstance(inner, StructureType) and not all(spec.material for spec in inner.model.specs):
        raise TypeError(f"{model.__name__}.{name} holds a member that is not material.")


def _kind(annotation: Any) -> ArgumentType:
    """The argument type that an annotation stands for; UnknownType where there is none."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        declared = [part for part in inner[1:] if isinstance(part, ArgumentType)]
        return declared[0] if declared else _kind(inner[0])
    if origin is list:
        return ListType(_kind(inner[0]))
    if origin in (Union, types.UnionType) and len(inner) == 2 and type(None) in inner:
        return OptionalType(_kind(next(part for part in inner if part is not type(None))))
    if isinstance(annotation, type) and issubclass(annotation, Arguments):
        return StructureType(annotation)
    return UnknownType()


def _innermost(kind: ArgumentType) -> ArgumentType:
    while isinstance(kind, OptionalType | ListType):
        kind = kind.inner if isinstance(kind, OptionalType) else kind.item
    return kind


def _currency_of(model: type[Arguments], name: str, kind: ArgumentType, named: object) -> str | None:
    """The field that holds the currency of a money field; TypeError where that is not clear."""
    if not isinstance(_innermost(kind), MoneyType):
        return None
    there = {
        info.alias or other: info
        for other, info in model.model_fields.items()
        if any(isinstance(part, CurrencyType) for part in info.metadata)
    }
    chosen = next(iter(there)) if named is None and len(there) == 1 else str(named)
    if chosen not in there:
        raise TypeError(f"{model.__name__}.{name} is money, and which field holds its currency is not clear.")
    if _is_material(model.model_fields[name]) and not _is_material(there[chosen]):
        raise TypeError(f"{model.__name__}.{name} is material, so its currency must be too.")
    return chosen


def _is_material(info: FieldInfo) -> bool:
    extra = info.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("x-placet-material"))


def _scaled(spec: ArgumentSpec, value: Any, currency: str) -> Any:
    money = _innermost(spec.kind)
    assert isinstance(money, MoneyType)
    if value is None:
        return None
    if isinstance(value, list):
        return [_scaled(spec, item, currency) for item in value]
    try:
        return money.scaled(value, currency)
    except PydanticCustomError as error:
        # Raised for the whole model; the field's name travels in the context (see _errors).
        context = {**(error.context or {}), "field": spec.name}
        raise PydanticCustomError(error.type, "{message}", context) from error


_CODES = {"missing": "missing_field", "extra_forbidden": "unknown_field"}
_MESSAGES = {"missing_field": "This field is missing.", "unknown_field": "The operation has no such field."}


def _errors(invalid: ValidationError) -> list[ArgumentError]:
    return [_error(error) for error in invalid.errors(include_url=False, include_input=False)]


def _error(error: Any) -> ArgumentError:
    context = error.get("ctx", {})
    path = (*error["loc"], context["field"]) if "field" in context else error["loc"]
    if "message" in context:
        return ArgumentError(pointer(path), error["type"], context["message"])
    code = _CODES.get(error["type"], "type")
    return ArgumentError(pointer(path), code, _MESSAGES.get(code, "The value has the wrong type."))


def _in_words_of_the_field(model: type[Arguments], refused: JsonRefused) -> str:
    """A number that overflows is an integer out of range where the schema asks for an integer."""
    integers = {f"/{spec.name}" for spec in model.specs if _innermost(spec.kind).name == "integer"}
    if refused.code == "number_overflow" and refused.path in integers:
        return "integer_out_of_range"
    return refused.code


def kinds_of(model: type[Arguments], prefix: str = "") -> Iterator[tuple[str, ArgumentType]]:
    """The path and the innermost type of every argument, those inside structures too."""
    for spec in model.specs:
        kind = _innermost(spec.kind)
        yield f"{prefix}{spec.name}", kind
        if isinstance(kind, StructureType):
            yield from kinds_of(kind.model, f"{prefix}{spec.name}/")
