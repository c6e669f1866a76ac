"""The settings: what the environment of this process says."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from common import content_keys as keys
from common.signing import key_id
from config.doctor.findings import Finding, ok, problem, warning

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
SHORTEST_KEY: Final = 50
FEWEST_SIGNS: Final = 5
SHORTEST_TOKEN: Final = 20


def _is_https() -> bool:
    return settings.PLACET_BASE_URL.startswith("https://")


def base_url() -> Iterator[Finding]:
    url = settings.PLACET_BASE_URL
    if _is_https():
        yield ok(f"People use {url}.")
    elif urlsplit(url).hostname in LOCAL:
        yield ok(f"People use {url}, from this machine only.")
    else:
        yield problem(
            f"People use {url}: passwords, sessions and decisions can be read and changed on the way.",
            "Put a proxy with a certificate in front, and set PLACET_BASE_URL to its https address.",
        )


def hosts() -> Iterator[Finding]:
    if "*" in settings.ALLOWED_HOSTS:
        yield problem("Every host name is answered.", "Name yours in PLACET_ALLOWED_HOSTS.")
    else:
        yield ok(f"Host names that are answered: {', '.join(settings.ALLOWED_HOSTS)}.")


def debug() -> Iterator[Finding]:
    if settings.DEBUG:
        yield problem("Debugging is on: error pages show settings and data.", "Unset PLACET_DEBUG.")
    else:
        yield ok("Debugging is off.")


def cookies() -> Iterator[Finding]:
    flags = (settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE)
    hidden = (settings.SESSION_COOKIE_HTTPONLY, settings.CSRF_COOKIE_HTTPONLY)
    if not all(hidden) or (_is_https() and not all(flags)):
        yield problem(
            "Cookies may be read by scripts or travel without https.",
            "Take back what your settings change about SESSION_COOKIE_* and CSRF_COOKIE_*.",
        )
    else:
        yield ok("Cookies are for the server alone." + (" They travel by https only." if all(flags) else ""))


def secret_key() -> Iterator[Finding]:
    if _can_be_guessed(settings.SECRET_KEY):
        yield problem(
            "The secret key can be guessed: whoever does signs in as anybody.",
            "Set PLACET_SECRET_KEY to the output of python3 -c 'import secrets; print(secrets.token_urlsafe(48))'."
            " Everybody signs in anew then.",
        )
    elif any(map(_can_be_guessed, settings.SECRET_KEY_FALLBACKS)):
        yield problem(
            "An earlier secret key can be guessed, and still counts: whoever does signs in as anybody.",
            "Take it out of PLACET_SECRET_KEY_FALLBACKS. If contents were sealed under it, run"
            " ./placet rotate_content_key before.",
        )
    else:
        yield ok("The secret key is long enough.")


def _can_be_guessed(key: str) -> bool:
    return len(key) < SHORTEST_KEY or len(set(key)) < FEWEST_SIGNS or key.startswith("django-insecure")


def signing() -> Iterator[Finding]:
    try:
        name = key_id()
    except ValueError:  # not base64, or not 32 bytes
        yield problem(
            "Receipts cannot be signed: the key is none.", "Set PLACET_SIGNING_KEY to 32 bytes in base64."
        )
        return
    own = "of their own" if settings.PLACET_SIGNING_KEY else "that changes with the secret key"
    yield ok(f"Receipts are signed with a key {own} ({name}).")


def content_keys() -> Iterator[Finding]:
    try:
        own, name = keys.are_own(), keys.current_name()
    except (ImproperlyConfigured, OSError):
        yield problem(
            "Contents of cases cannot be read or stored: a content key is none.",
            "Set PLACET_CONTENT_KEYS to 32 random bytes in base64; several with commas, the newest first.",
        )
        return
    if keys.file_is_open():
        yield problem(
            "Others on this machine may read or change the file of content keys.",
            "chmod 600 the file of PLACET_CONTENT_KEYS_FILE, and rotate: who has read it can read the contents.",
        )
    elif own:
        yield ok(f"Contents are sealed under a key of their own ({name}).")
    else:
        yield warning(
            "Contents are sealed under a key that is derived from the secret key: who has the one has both.",
            "Set PLACET_CONTENT_KEYS to 32 random bytes in base64, restart, and run ./placet rotate_content_key.",
        )


def proxies() -> Iterator[Finding]:
    if _is_https() and not settings.PLACET_BEHIND_PROXY:
        yield warning(
            "People use https, and no proxy is said to stand in front: every request would be sent to https again.",
            "Set PLACET_BEHIND_PROXY=true if a proxy of yours sets X-Forwarded-Proto, and removes a client's own.",
        )
    elif settings.PLACET_BEHIND_PROXY and not _is_https():
        yield warning(
            "X-Forwarded-Proto is believed, and people use http: anybody may claim https.",
            "Unset PLACET_BEHIND_PROXY, or set PLACET_BASE_URL to the proxy's https address.",
        )
    else:
        yield ok("A proxy's word for https is believed." if _is_https() else "No proxy is believed.")


def metrics_token() -> Iterator[Finding]:
    token = settings.PLACET_METRICS_TOKEN
    if token and len(token) < SHORTEST_TOKEN:
        yield warning("The token for /metrics can be guessed.", "Make PLACET_METRICS_TOKEN longer.")
    elif token:
        yield ok("/metrics is for whoever has the token.")
    else:
        yield ok("/metrics is for this machine only.")


CHECKS: Final = (base_url, hosts, debug, cookies, secret_key, signing, content_keys, proxies, metrics_token)
