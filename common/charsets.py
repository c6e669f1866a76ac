"""Everything is read as UTF-8, whatever encoding a request says that it is in.

Django would read addresses and forms in whatever Python has a codec for, `hex` and `utf-7` included: it breaks off
before a middleware sees the request, or again in the page that says so. So the claim is taken out before Django looks,
and `config.limits` refuses the request in our words.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from django.utils.http import parse_header_parameters

ENCODING: Final = "placet.encoding"
"""In the environment of a request: the encoding that it said it is in, where that is not UTF-8."""
_UTF8: Final = frozenset({"utf-8", "utf8", "utf_8", ""})
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def in_utf8(application: Application) -> Application:
    """The application, behind what makes every request one in UTF-8."""

    def called(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        stated = environ.get("CONTENT_TYPE", "")
        if "charset" in stated.lower():
            _take_out(environ, stated)
        return application(environ, start_response)

    return called


def _take_out(environ: dict[str, Any], stated: str) -> None:
    """The claim, as Django would read it; of the other parameters only the boundary of a form means anything."""
    try:
        kind, others = parse_header_parameters(stated)
    except (ValueError, LookupError):
        kind, others = "", {"charset": "unreadable"}
    charset = others.get("charset", "").strip().lower()
    boundary = others.get("boundary", "")
    environ["CONTENT_TYPE"] = f'{kind}; boundary="{boundary}"' if boundary and '"' not in boundary else kind
    if charset not in _UTF8:
        environ[ENCODING] = charset
