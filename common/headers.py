"""What every answer tells browsers, whatever made it: a page, a fragment, the API, a static file, or an error.

The outermost middleware, so that nothing answers before it. What a view or another middleware said stands.
"""

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

POLICIES: Final = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(
        f"{feature}=()"
        for feature in (
            "accelerometer", "autoplay", "browsing-topics", "camera", "display-capture", "encrypted-media",
            "geolocation", "gyroscope", "hid", "magnetometer", "microphone", "midi", "payment", "screen-wake-lock",
            "serial", "usb", "xr-spatial-tracking",
        )
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}  # fmt: skip


class HeadersMiddleware:
    """Adds the headers that are missing, and keeps everything but static files out of every cache."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        for name, value in POLICIES.items():
            response.headers.setdefault(name, value)
        if not request.path.startswith(f"/{settings.STATIC_URL.strip('/')}/"):
            # `never_cache` and Django's own views say less than this, and what they say allows a private copy.
            response.headers["Cache-Control"] = "no-store"
        return response
