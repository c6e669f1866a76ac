"""Hostile texts: each bears the word *canary* where it would show that it had become more than text."""

import re
from html.parser import HTMLParser
from typing import Final

TEXTS: Final[dict[str, str]] = {
    "element": '<x-canary onclick="canary()">canary</x-canary>',
    "out_of_attribute": '"><x-canary src=x onerror=canary()>',
    "out_of_single_quotes": "' onmouseover='canary()' hx-get='/canary' x-canary='",
    "out_of_textarea": "</textarea></title></style></script><x-canary>",
    "out_of_comment": "--><x-canary><!--",
    "script": "<script>canary()</script>",
    "svg": "<svg/onload=canary()><x-canary/></svg>",
    "htmx": '<div hx-get="/canary" hx-trigger="load"></div>',
    "url": "javascript:canary()",
    "data_url": "data:text/html,<x-canary>",
    "markdown": "[canary](javascript:canary()) ![canary](http://canary.example/x.png)",
    "formula": '=HYPERLINK("http://canary.example","canary")',
    "template": "{{ canary }}{% canary %}{# canary #}",
    "entity": "&lt;x-canary&gt;&#x3c;x-canary&#62;",
    "header": "canary\r\nX-Canary: 1\r\n\r\n<x-canary>",
    "ansi": "\x1b[2J\x1b]0;canary\x07",
    "bidi": "canary\u202egnp.exe\u2066\u200f",
    "separators": 'canary\u2028\u2029\u0085{"event": "canary"}',
    "invisible": "can\u200bary\u00ad\ufeff\U000e0041",
    "long": "<x-canary>" * 300,
}
HIDES: Final = frozenset(
    "\x1b\x07\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f\u200e\u200b\u2028\u2029\x85\ufeff\U000e0041\x00"
)
"""None of these may reach a page as it is."""

_PLAIN: Final = frozenset(
    {"value", "title", "aria-label", "placeholder", "data-text", "data-copy", "content", "alt"}
)
"""Attributes whose value is a text and nothing else."""

_ADDRESSES: Final = frozenset(
    {"href", "action", "src", "formaction", "hx-get", "hx-post", "hx-push-url", "data-list"}
)
_ENCODED: Final = re.compile(r"(?!//)[A-Za-z0-9/?&=%+._~:-]*")
"""An address of this very site in which every other letter is percent-encoded."""


class Page(HTMLParser):
    """What a page has become: what is wrong with it, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.links: set[str] = set()
        self._in_field = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "canary" in tag:
            self.wrong.append(f"an element {tag}")
        if tag == "script" and not dict(attrs).get("src"):
            self.wrong.append("a script of its own")
        self._in_field = tag == "textarea"
        for name, value in attrs:
            self._attribute(tag, name, value or "")
            if name != "value":  # a field gives back exactly what was typed
                self._hidden(value or "", f"{name} of {tag}")

    def handle_endtag(self, tag: str) -> None:
        self._in_field = False

    def handle_data(self, data: str) -> None:
        if not self._in_field:
            self._hidden(data, "the text")

    def _hidden(self, text: str, where: str) -> None:
        self.wrong += [f"U+{ord(letter):04X} as it is in {where}" for letter in HIDES & set(text)]

    def handle_comment(self, data: str) -> None:
        if "canary" in data:
            self.wrong.append("a comment")

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if "canary" in name or name.startswith("on") or name == "style":
            self.wrong.append(f"an attribute {name} of {tag}")
        if "canary" not in value and not value.lower().startswith(("javascript:", "data:")):
            if name == "href":
                self.links.add(value)
        elif name in _ADDRESSES and value.startswith(("/", "?")) and _ENCODED.fullmatch(value):
            if name == "href":
                self.links.add(value)  # an address of ours that carries a text
        elif name not in _PLAIN:
            self.wrong.append(f"{name}={value[:60]} of {tag}")
