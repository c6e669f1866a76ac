"""Secrets stand in a contract by reference and fingerprint, never by value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from common.fields.base import ArgumentType, Rendered, refuse
from common.fields.scalars import IdentifierType
from common.strictjson import JsonValue

_FINGERPRINT: Final = re.compile(r"hmac:[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class SecretRefType(ArgumentType):
    """`{"secret_ref", "fingerprint"}`: where the value lies, and an HMAC that shows a change of it."""

    name: ClassVar[str] = "secret-ref"

    def normalize(self, value: Any) -> JsonValue:
        if not isinstance(value, dict) or set(value) != {"secret_ref", "fingerprint"}:
            refuse("secret_format", "A secret is given as secret_ref and fingerprint, never by its value.")
        reference = IdentifierType().normalize(value["secret_ref"])
        fingerprint = value["fingerprint"]
        if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
            refuse("secret_format", "The fingerprint of a secret is hmac: and 64 hexadecimal digits.")
        return {"secret_ref": reference, "fingerprint": fingerprint}

    def json_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "secret_ref": IdentifierType().json_schema(),
                "fingerprint": {"type": "string", "pattern": f"^{_FINGERPRINT.pattern}$"},
            },
            "required": ["secret_ref", "fingerprint"],
            "additionalProperties": False,
        }

    def render(self, value: dict[str, str], siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(f"{value['secret_ref']} {value['fingerprint']}", ("the value itself is never shown",))

    def parse(self, text: str) -> JsonValue:
        reference, fingerprint = text.split(" ")
        return {"secret_ref": reference, "fingerprint": fingerprint}


SecretRef = Annotated[dict[str, str], SecretRefType()]
