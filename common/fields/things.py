"""Accounts, people, files, hosts: what an action is about, each shown so that one is not taken for another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from common import display
from common.display import Flag
from common.fields.base import ArgumentType, Rendered, need_text, refuse
from common.fields.scalars import IdentifierType
from common.hosts import HostRefused, ascii_host, notes_on
from common.strictjson import MAX_INTEGER, JsonValue

_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FILE: Final = re.compile(r"sha256:([0-9a-f]{64}) ([0-9,]+) bytes (.*)", re.ASCII | re.DOTALL)
_RUNS: Final = re.compile(
    r"\.(?:exe|scr|com|pif|bat|cmd|psm?1|vb[se]?|jse?|ws[fch]|sct|hta|lnk|url|website|webloc|desktop|msi|msix|msp|mst"
    r"|jar|jnlp|cpl|dll|chm|hlp|reg|inf|scf|library-ms|search-ms|settingcontent-ms|appref-ms|application|gadget"
    r"|x?html?|xht|shtml|mht|mhtml|svgz?|iso|img|vhdx?|dmg|pkg|deb|rpm|apk|app|command|sh|py|pl|rb|php|one"
    r"|do[ct]m|xl[stw]m|xlam|xll|pp[tsa]m|potm|sldm|iqy|slk)[. ]*(?:[:%].*)?$",
    re.ASCII | re.IGNORECASE,
)
_PLACE: Final = re.compile(r"[/\\]|^[a-z]:|\.[a-z0-9]{1,6}:|%2f|%5c|%00", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class AccountType(IdentifierType):
    """Where money or goods go, by the name a provider gave it. A first-ever one is told to the reviewer."""

    name: ClassVar[str] = "account"


@dataclass(frozen=True)
class IbanType(ArgumentType):
    """A bank account by its IBAN with right check digits; spelled without spaces, shown in groups of four."""

    name: ClassVar[str] = "iban"

    def normalize(self, value: Any) -> str:
        text = need_text(value).replace(" ", "").upper()
        if not _IBAN.fullmatch(text) or _remainder(text) != 1:
            refuse("iban_format", "An IBAN has a country, two check digits that fit, and the account.")
        return text

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 15, "maxLength": 42}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(" ".join(re.findall(".{1,4}", value)), (f"country {value[:2]}",))

    def parse(self, text: str) -> str:
        return text.replace(" ", "")


def _remainder(iban: str) -> int:
    return int("".join(str(int(sign, 36)) for sign in iban[4:] + iban[:4])) % 97


@dataclass(frozen=True)
class HostType(ArgumentType):
    """A public host name; spelled and shown in ASCII."""

    name: ClassVar[str] = "host"

    def normalize(self, value: Any) -> str:
        try:
            return ascii_host(need_text(value))
        except HostRefused as refused:
            refuse(f"host_{refused.code}", refused.message)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "hostname", "maxLength": 253}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        sub, flags = notes_on(value)
        return Rendered(value, sub, flags, strong=(0, len(value)))

    def parse(self, text: str) -> str:
        return text


def _members(value: Any, names: set[str], code: str, message: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != names:
        refuse(code, message)
    return value


def _name(value: Any, code: str) -> str:
    text = need_text(value, code)
    if not 0 < len(text) <= 200 or "\n" in text:
        refuse(code, "A name has one line of at most 200 characters.")
    return text


def _object_schema(**members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class PersonType(ArgumentType):
    """Somebody, by the id that a system gave them, which is what counts, and the name that people know."""

    name: ClassVar[str] = "person"

    def normalize(self, value: Any) -> JsonValue:
        said = _members(value, {"id", "name"}, "person_format", "A person is given as id and name.")
        return {"id": IdentifierType().normalize(said["id"]), "name": _name(said["name"], "person_format")}

    def json_schema(self) -> dict[str, Any]:
        name = {"type": "string", "minLength": 1, "maxLength": 200}
        return _object_schema(id=IdentifierType().json_schema(), name=name)

    def render(self, value: dict[str, str], siblings: Mapping[str, Any]) -> Rendered:
        person, name = value["id"], value["name"]
        text = f"{person} {display.visible(name)}"
        return Rendered(text, display.explained(name), display.flags_of(name), strong=(0, len(person)))

    def parse(self, text: str) -> JsonValue:
        person, _, name = text.partition(" ")
        return {"id": person, "name": display.unveil(name)}


@dataclass(frozen=True)
class FileType(ArgumentType):
    """A file by its hash: what is sent later is compared with it. Name and size are bound too."""

    name: ClassVar[str] = "file"

    def normalize(self, value: Any) -> JsonValue:
        said = _members(
            value, {"name", "size", "sha256"}, "file_format", "A file is given as name, size and sha256."
        )
        size, digest = said["size"], said["sha256"]
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MAX_INTEGER:
            refuse("file_format", "The size of a file is a number of bytes.")
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            refuse("file_format", "The sha256 of a file has 64 hexadecimal digits, in small letters.")
        return {"name": _name(said["name"], "file_format"), "size": size, "sha256": digest}

    def json_schema(self) -> dict[str, Any]:
        return _object_schema(
            name={"type": "string", "minLength": 1, "maxLength": 200},
            size={"type": "integer", "minimum": 0, "maximum": MAX_INTEGER},
            sha256={"type": "string", "pattern": f"^{_SHA256.pattern}$"},
        )

    def render(self, value: dict[str, Any], siblings: Mapping[str, Any]) -> Rendered:
        name = value["name"]
        before = f"sha256:{value['sha256']} {value['size']:,} bytes "
        text = before + display.visible(name)
        flags = (*display.flags_of(name), *_file_flags(name))
        return Rendered(text, display.explained(name), flags, strong=(len(before), len(text)))

    def parse(self, text: str) -> JsonValue:
        found = _FILE.fullmatch(text)
        if found is None:
            raise ValueError("The text shows no file.")
        return {"name": display.unveil(found[3]), "size": int(found[2].replace(",", "")), "sha256": found[1]}


_RUNS_SAYS: Final = "By its name, the file runs, or shows a page of its own, when it is opened."
_PLACE_SAYS: Final = "The name of the file says where it goes: it holds a path, not only a name."


def _file_flags(name: str) -> tuple[Flag, ...]:
    plain = "".join(sign for sign in name if not display.hidden_kind(sign))
    found = (
        (_RUNS.search(plain), "file_runs", _RUNS_SAYS),
        (_PLACE.search(plain), "file_path", _PLACE_SAYS),
    )
    return tuple(Flag(code, sentence, acknowledge=True) for match, code, sentence in found if match)


Account = Annotated[str, AccountType()]
Iban = Annotated[str, IbanType()]
Host = Annotated[str, HostType()]
Person = Annotated[dict[str, str], PersonType()]
FileByHash = Annotated[dict[str, Any], FileType()]
