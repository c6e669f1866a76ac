"""Django's settings. Everything that differs between installations comes from the environment.

The variables are listed in `.env.example`. No address has a default: a wrong guess would reach
somebody else's server. `./placet` sets all of them for one machine.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config.logs import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()


def required(name: str, what: str) -> str:
    """The variable's value. Raises ImproperlyConfigured, saying what it is for, when it is not set."""
    value: str = env.str(name, default="")
    if not value:
        raise ImproperlyConfigured(
            f"{name} is not set. It holds {what}. "
            "`./placet COMMAND` sets it; whoever starts processes otherwise finds it in .env.example."
        )
    return value


# --- this installation -------------------------------------------------------------------------
DEBUG = env.bool("PLACET_DEBUG", default=False)
SECRET_KEY = required("PLACET_SECRET_KEY", "the key that signs sessions and view receipts")
PLACET_BASE_URL = required(
    "PLACET_BASE_URL", "the address people use, such as https://placet.example.org"
).rstrip("/")
PLACET_DATA_DIR = Path(required("PLACET_DATA_DIR", "the folder for files that must survive a restart"))
_HTTPS = PLACET_BASE_URL.startswith("https://")
ALLOWED_HOSTS = env.list("PLACET_ALLOWED_HOSTS", default=[]) or [urlsplit(PLACET_BASE_URL).hostname or ""]
CSRF_TRUSTED_ORIGINS = [PLACET_BASE_URL]

# --- apps --------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_filters",
    "django_tables2",
    "pgtrigger",
    "csp",
    "common",
    "audit",
    "access",
    "approvals",
    "workflows",
    "repair",
    "examples.refunds",
    "config",  # for its command `demo`
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "access.middleware.RequestIdMiddleware",
    "config.logs.RequestLogMiddleware",
    "common.problems.ProblemMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "access.middleware.MembershipMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.context.shell",
            ],
        },
    }
]

# --- database ----------------------------------------------------------------------------------
# No request, no task and no transaction may hold the product up for long.
_LIMITS = {
    "default": "-c statement_timeout=15s -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s",
    "owner": "-c lock_timeout=10s",
}


def database(variable: str, what: str, *, alias: str) -> dict[str, Any]:
    """Django's settings for the database whose address is in `variable`."""
    required(variable, what)
    settings: dict[str, Any] = env.db_url(variable)
    options = settings.setdefault("OPTIONS", {})
    # A socket folder arrives as the option `host`; `dbshell` looks for it in HOST.
    settings["HOST"] = settings["HOST"] or options.pop("host", "")
    options["options"] = f"{_LIMITS[alias]} {options.get('options', '')}".strip()
    options.setdefault("application_name", "placet")
    options.setdefault("connect_timeout", 5)
    return settings | {"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True, "ATOMIC_REQUESTS": False}


# "default" is the application role, which owns nothing. "owner" migrates, and is there only for
# the processes that are given its address.
DATABASES = {
    "default": database("DATABASE_URL", "the application role's PostgreSQL address", alias="default")
    | {"TEST": {"MIRROR": "owner"}},
}
if env.str("DATABASE_OWNER_URL", default=""):
    DATABASES["owner"] = database(
        "DATABASE_OWNER_URL", "the owner role's PostgreSQL address", alias="owner"
    ) | {"TEST": {"DEPENDENCIES": []}}
# The role that migrations take rights from (on audit events, for one).
PLACET_APP_ROLE: str = DATABASES["default"]["USER"]

# --- people and sessions -----------------------------------------------------------------------
AUTH_USER_MODEL = "access.User"
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/review/"
LOGOUT_REDIRECT_URL = "/sign-in/"
_VALIDATORS = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATORS}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATORS}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": f"{_VALIDATORS}.CommonPasswordValidator"},
    {"NAME": f"{_VALIDATORS}.NumericPasswordValidator"},
]
# The prefix makes browsers insist on https, on the path / and on this very host.
_COOKIE_PREFIX = "__Host-placet" if _HTTPS else "placet"
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = _HTTPS
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = _HTTPS

# --- what browsers are told --------------------------------------------------------------------
# `no-referrer` would turn the Origin of our own form posts into "null", which the CSRF check refuses.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_HSTS_SECONDS = 31_536_000 if _HTTPS else 0
X_FRAME_OPTIONS = "DENY"
if env.bool("PLACET_BEHIND_PROXY", default=False):
    # Only behind a proxy that sets this header itself; otherwise a client could claim https.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "connect-src": [SELF],
        "font-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
# Larger bodies are refused before they are read. The API's own limits are lower and say more.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

# --- language, time, files ---------------------------------------------------------------------
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = PLACET_DATA_DIR / "static"
# `collectstatic` is told by this variable to write names with a hash; from then on they are served.
_COLLECTED = env.bool("PLACET_COLLECT_STATIC", default=False) or (STATIC_ROOT / "staticfiles.json").exists()
_HASHED_NAMES = _COLLECTED and not DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if _HASHED_NAMES
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not _HASHED_NAMES

# --- the public API ----------------------------------------------------------------------------
# How many requests of one web process may wait for a change; each holds one of its threads.
PLACET_LONG_POLLS = env.int("PLACET_LONG_POLLS", default=4)
# How many proposals of one automation may wait for people at a time.
PLACET_OPEN_PROPOSALS = env.int("PLACET_OPEN_PROPOSALS", default=500)
# 32 bytes in base64: the key that signs receipts. Derived from the secret key where it is empty.
PLACET_SIGNING_KEY = env.str("PLACET_SIGNING_KEY", default="")
# Who reads /metrics from elsewhere sends it as a bearer token. Where it is empty, only this machine reads them.
PLACET_METRICS_TOKEN = env.str("PLACET_METRICS_TOKEN", default="")

# --- Celery: a message is a hint, the truth is in PostgreSQL -----------------------------------
CELERY_BROKER_URL = required("REDIS_URL", "the address of Redis or Valkey")
CELERY_TASK_DEFAULT_QUEUE = "placet"
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_TIME_LIMIT = 120
CELERY_TASK_SOFT_TIME_LIMIT = 90
CELERY_TASK_PUBLISH_RETRY = False  # the sweep finds what could not be announced
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_DISABLE_RATE_LIMITS = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 180,  # longer than any task
    "unacked_restore_interval": 5,  # kombu's own pace is one look in 100 s
    "unacked_restore_throttle": 1,
    "socket_timeout": 5,  # a hung Redis would otherwise hold a publisher for 40 s
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
}
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    # A beat that nobody took before the next one is of no use.
    "tick": {"task": "workflows.tasks.tick", "schedule": 5.0, "options": {"expires": 5}},
    "seal": {"task": "audit.tasks.seal", "schedule": 1.0, "options": {"expires": 1}},
    "verify": {"task": "audit.tasks.verify_daily", "schedule": 86_400.0, "options": {"expires": 3600}},
}

# --- outgoing calls, and the worked example ----------------------------------------------------
# Where the example's provider listens, and the file of its keys: {tenant: key}. Without them the example waits.
PLACET_REFUNDS_URL = env.str("PLACET_REFUNDS_URL", default="")
PLACET_REFUNDS_KEYS = env.str("PLACET_REFUNDS_KEYS", default="")
# Each host:port that may be called by http or on a private address; the example's provider is on the loopback.
OUTGOING_TRUSTED_HOSTS = env.list("PLACET_TRUSTED_HOSTS", default=[])
if PLACET_REFUNDS_URL:
    OUTGOING_TRUSTED_HOSTS = [*OUTGOING_TRUSTED_HOSTS, urlsplit(PLACET_REFUNDS_URL).netloc]

# --- logs --------------------------------------------------------------------------------------
LOGGING_CONFIG = "logging.config.dictConfig"
LOGGING = logging_config(level=env.str("PLACET_LOG_LEVEL", default="INFO"))
