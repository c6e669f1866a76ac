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
from config.signin import openid_connect

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
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "common",
    "audit",
    "access",
    "notify",
    "approvals",
    "workflows",
    "repair",
    "examples.refunds",
    "config",  # for its command `demo`
]
MIDDLEWARE = [
    "common.headers.HeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",  # before whatever may answer by itself
    "approvals.pulse.middleware.PulseMiddleware",  # before whatever asks the database
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "access.middleware.RequestIdMiddleware",
    "config.logs.RequestLogMiddleware",
    "common.dbroles.ApplicationRoleMiddleware",
    "common.problems.ProblemMiddleware",
    "config.limits.BodyLimitMiddleware",
    "access.no_tokens.NoTokenOnPagesMiddleware",
    "common.unavailable.UnavailableMiddleware",
    "common.unreadable.UnreadableMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "access.sessions.SessionLimitsMiddleware",
    "access.middleware.MembershipMiddleware",
    "config.limits.PeopleRateMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "access.sessions.RequireMfaMiddleware",
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
# No request, no task and no transaction may hold the product up for long. And what was committed must survive a crash
# of the server, whatever its own default: a lost *sent* would be sent again.
_SERVING = (
    "-c statement_timeout=15s -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s"
    " -c synchronous_commit=on"
)
# Row-level security binds the owner too; it lets a connection through that says it migrates.
_MIGRATING = "-c lock_timeout=10s -c placet.migrating=on"
# A server that vanished without a word (no reset, no answer) is given up after half a minute.
_PATIENCE = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,  # milliseconds
}


def database(variable: str, whose: str, limits: str = _SERVING, engine: str = "") -> dict[str, Any]:
    """Django's settings for the database whose address is in `variable`."""
    required(variable, f"the {whose} role's PostgreSQL address")
    settings: dict[str, Any] = env.db_url(variable)
    settings["ENGINE"] = engine or settings["ENGINE"]
    options = settings.setdefault("OPTIONS", {})
    # A socket folder arrives as the option `host`; `dbshell` looks for it in HOST.
    settings["HOST"] = settings["HOST"] or options.pop("host", "")
    options["options"] = f"{limits} {options.get('options', '')}".strip()
    options.setdefault("application_name", "placet")
    settings["OPTIONS"] = _PATIENCE | options
    return settings | {"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True, "ATOMIC_REQUESTS": False}


# "app" is the application role, which serves requests and sees the rows of one tenant at a time. "system" sees all:
# workers, sweep, sealer and commands are it, and a few functions of a request. Neither owns anything. "default" is
# whatever the running code works as (common/dbroles.py): in requests always "app", else what the process is told.
# "owner" migrates, and is there only for the processes that are given its address.
_MIRROR = {"TEST": {"MIRROR": "owner"}}
_APP = database("DATABASE_URL", "application", engine="common.tenantdb") | _MIRROR
_SYSTEM = database("DATABASE_SYSTEM_URL", "system") | _MIRROR
_OUTSIDE_REQUESTS = {"app": _APP, "system": _SYSTEM}[env.str("PLACET_DATABASE_ROLE", default="system")]
DATABASES = {"default": dict(_OUTSIDE_REQUESTS), "app": _APP, "system": _SYSTEM}
if env.str("DATABASE_OWNER_URL", default=""):
    DATABASES["owner"] = database("DATABASE_OWNER_URL", "owner", _MIGRATING) | {"TEST": {"DEPENDENCIES": []}}
# The roles that migrations take rights from (on audit events, for one), and that policies name.
_SIGNER = env.db_url_config(env.str("DATABASE_SIGNER_URL", default="") or "postgresql://placet_signer@/x")
PLACET_APP_ROLE, PLACET_SYSTEM_ROLE = str(_APP["USER"]), str(_SYSTEM["USER"])
PLACET_SIGNER_ROLE = str(_SIGNER["USER"])

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
# The first one makes new hashes; whoever signs in with an older one gets a new one.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
PASSWORD_RESET_TIMEOUT = 3600
# A session ends so many seconds after sign-in, and after so many without anything that a person did.
PLACET_SESSION_MAX_S = env.int("PLACET_SESSION_MAX_S", default=12 * 3600)
PLACET_SESSION_IDLE_S = env.int("PLACET_SESSION_IDLE_S", default=3600)
# Whoever proved so many seconds ago who they are is asked again before something that matters.
PLACET_REAUTH_S = env.int("PLACET_REAUTH_S", default=900)
# From this risk on (the policy says it, 1 to 3), approving matters; and a passkey signs it (0: as operations say).
PLACET_HIGH_RISK = env.int("PLACET_HIGH_RISK", default=3)
PLACET_SIGNED_RISK = env.int("PLACET_SIGNED_RISK", default=0)
# Roles whose members must have a second factor, or `all`.
PLACET_REQUIRE_MFA = env.list("PLACET_REQUIRE_MFA", default=[])
PLACET_BEHIND_PROXY = env.bool("PLACET_BEHIND_PROXY", default=False)
# The prefix makes browsers insist on https, on the path / and on this very host.
_COOKIE_PREFIX = "__Host-placet" if _HTTPS else "placet"
# Django's own, by statements that the server has prepared: three come before each decision.
AUTHENTICATION_BACKENDS = ["access.signed_in.Backend"]
SESSION_ENGINE = "access.signed_in"
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = _HTTPS
SESSION_COOKIE_AGE = PLACET_SESSION_MAX_S
PLACET_BROWSER_COOKIE_NAME = f"{_COOKIE_PREFIX}_browser"
MESSAGE_STORAGE = "common.messages.MessageStorage"
PLACET_MESSAGES_COOKIE_NAME = f"{_COOKIE_PREFIX}_messages"
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = _HTTPS

# --- sign-in by django-allauth: access/adapters.py says what is ours in it ---------------------------
ACCOUNT_ADAPTER = "access.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_SIGNUP_ENABLED = False
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Placet] "
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGIN_TIMEOUT = 600  # from the password to the second factor
ACCOUNT_REAUTHENTICATION_TIMEOUT = PLACET_REAUTH_S
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "django.contrib.auth.tokens.PasswordResetTokenGenerator"  # noqa: S105
ACCOUNT_RATE_LIMITS = False  # they count in a cache; ours count in the history (access/throttle.py)
ACCOUNT_FORMS = {
    "login": "access.forms.SignInForm",
    "change_password": "access.forms.ChangePasswordForm",
    "reset_password": "access.forms.ForgotForm",
    "reset_password_from_key": "access.forms.NewPasswordForm",
    "user_token": "access.forms.ResetKeyForm",
}
MFA_ADAPTER = "access.adapters.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RATE_LIMITS = False  # as above: ten people of one office sign in by passkey in a minute
MFA_TOTP_ISSUER = "Placet"
MFA_TOTP_TOLERANCE = 1
MFA_FORMS = {
    "authenticate": "access.forms.CodeForm",
    "authenticate_webauthn": "access.forms.PasskeyForm",
    "login_webauthn": "access.forms.PasskeySignInForm",
    "reauthenticate": "access.forms.ConfirmCodeForm",
    "reauthenticate_webauthn": "access.forms.ConfirmPasskeyForm",
    "activate_totp": "access.forms.AddAppForm",
    "add_webauthn": "access.forms.AddPasskeyForm",
}
SOCIALACCOUNT_ADAPTER = "access.adapters.ProviderAdapter"
SOCIALACCOUNT_AUTO_SIGNUP = False
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_OPENID_CONNECT_URL_PREFIX = ""
PLACET_OIDC = openid_connect(env)
SOCIALACCOUNT_PROVIDERS = PLACET_OIDC.providers

# --- mail --------------------------------------------------------------------------------------
# Where nothing is set, mails become files in the data folder: an outbox to look at, and nothing leaves the machine.
EMAIL_FILE_PATH = str(PLACET_DATA_DIR / "mail")
_MAIL = env.email_url_config(env.str("PLACET_MAIL_URL", default="") or "filemail:")
EMAIL_BACKEND = _MAIL["EMAIL_BACKEND"]
EMAIL_HOST, EMAIL_PORT = _MAIL.get("EMAIL_HOST") or "localhost", _MAIL.get("EMAIL_PORT") or 25
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL["EMAIL_HOST_USER"] or "", _MAIL["EMAIL_HOST_PASSWORD"] or ""
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL.get("EMAIL_USE_TLS", False), _MAIL.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("PLACET_MAIL_FROM", default="placet@localhost")

# --- what browsers are told --------------------------------------------------------------------
# `no-referrer` would turn the Origin of our own form posts into "null", which the CSRF check refuses.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_HSTS_SECONDS = 31_536_000 if _HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _HTTPS
# Behind a proxy that speaks https to the world, PLACET_BEHIND_PROXY must be true, or this goes round in circles.
SECURE_SSL_REDIRECT = _HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
_FALLBACKS = env.list("PLACET_SECRET_KEY_FALLBACKS", default=[])
SECRET_KEY_FALLBACKS = [key.strip() for key in _FALLBACKS if key.strip()]  # a blank one would sign for all
X_FRAME_OPTIONS = "DENY"
if PLACET_BEHIND_PROXY:
    # Only behind a proxy that sets this header itself; otherwise a client could claim https.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE], "script-src": [SELF], "style-src": [SELF], "img-src": [SELF], "connect-src": [SELF],
        "font-src": [SELF], "form-action": [SELF, *PLACET_OIDC.origins], "frame-ancestors": [NONE], "base-uri": [NONE],
        "object-src": [NONE],
    }
}  # fmt: skip
# Larger bodies are refused before they are read. A proposal with its evidence may have as much; the API's other limits
# are lower and say more, and forms have one of their own (config/limits.py).
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024

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
# Every so many seconds a web process looks for what happened, for all its open pages; 0: whenever one of them asks.
PLACET_PULSE_S = env.float("PLACET_PULSE_S", default=0.4)
# How many proposals of one automation may wait for people at a time.
PLACET_OPEN_PROPOSALS = env.int("PLACET_OPEN_PROPOSALS", default=500)
# And of one organisation, all its automations together.
PLACET_OPEN_PROPOSALS_TENANT = env.int("PLACET_OPEN_PROPOSALS_TENANT", default=20_000)
# Requests of one token (or webhook endpoint) and of one organisation, and decisions of one person, in a minute; 0: any.
PLACET_REQUESTS_PER_MINUTE = env.int("PLACET_REQUESTS_PER_MINUTE", default=600)
PLACET_TENANT_REQUESTS_PER_MINUTE = env.int("PLACET_TENANT_REQUESTS_PER_MINUTE", default=6_000)
PLACET_DECISIONS_PER_MINUTE = env.int("PLACET_DECISIONS_PER_MINUTE", default=30)
# 32 bytes in base64: the key that signs receipts. Derived from the secret key where it is empty.
PLACET_SIGNING_KEY = env.str("PLACET_SIGNING_KEY", default="")
# Keys (32 bytes in base64, commas), or their file, else of the secret key: the first wraps, all unwrap keys of runs.
PLACET_CONTENT_KEYS = env.str("PLACET_CONTENT_KEYS", default="")
PLACET_CONTENT_KEYS_FILE = env.str("PLACET_CONTENT_KEYS_FILE", default="")
# Days from a run's end until its content is erased, where its workflow says nothing else; 0: never.
PLACET_RETENTION_DAYS = env.int("PLACET_RETENTION_DAYS", default=0)
# Days for which a callback stays in the outbox after it was delivered or given up; 1 at least.
PLACET_CALLBACK_DAYS = env.int("PLACET_CALLBACK_DAYS", default=90)
# Days for which a notice stays after it was read or over, and a mail or chat message after it left; 1 at least.
PLACET_NOTICE_DAYS = env.int("PLACET_NOTICE_DAYS", default=90)
# Who reads /metrics from elsewhere sends it as a bearer token. Where it is empty, only this machine reads them.
PLACET_METRICS_TOKEN = env.str("PLACET_METRICS_TOKEN", default="")

# --- workers -----------------------------------------------------------------------------------
# From claiming an action to sending it; a worker that is gone for longer has lost it to another.
PLACET_CLAIM_LEASE_S = env.float("PLACET_CLAIM_LEASE_S", default=20.0)
# So many calls one worker makes at once, each in a thread. 1: one after the other.
PLACET_CALLS_AT_ONCE = env.int("PLACET_CALLS_AT_ONCE", default=20)
# A lifted freeze or a closed circuit lets so many actions go each second, never all at once.
PLACET_RELEASES_PER_SECOND = env.int("PLACET_RELEASES_PER_SECOND", default=5)

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
    "call_back": {"task": "workflows.tasks.call_back", "schedule": 5.0, "options": {"expires": 5}},
    "seal": {"task": "audit.tasks.seal", "schedule": 1.0, "options": {"expires": 1}},
    "verify": {"task": "audit.tasks.verify_daily", "schedule": 86_400.0, "options": {"expires": 3600}},
}

# --- outgoing calls, and the worked example ----------------------------------------------------
# Where the example's provider listens, and the file of its keys: {tenant: key}. Without them the example waits.
PLACET_REFUNDS_URL = env.str("PLACET_REFUNDS_URL", default="")
PLACET_REFUNDS_KEYS = env.str("PLACET_REFUNDS_KEYS", default="")
# The file of the secrets that arguments name: {tenant: {name: value}}, for its owner's eyes only.
PLACET_SECRETS_FILE = env.str("PLACET_SECRETS_FILE", default="")
# Each host:port that may be called by http or on a private address; the example's provider is on the loopback.
OUTGOING_TRUSTED_HOSTS = env.list("PLACET_TRUSTED_HOSTS", default=[])
# The same for addresses that admins of an organisation choose, such as callbacks: none of the above is theirs to call.
OUTGOING_TOLD_HOSTS = env.list("PLACET_CALLBACK_HOSTS", default=[])
if PLACET_REFUNDS_URL:
    OUTGOING_TRUSTED_HOSTS = [*OUTGOING_TRUSTED_HOSTS, urlsplit(PLACET_REFUNDS_URL).netloc]

# --- logs --------------------------------------------------------------------------------------
LOGGING_CONFIG = "logging.config.dictConfig"
LOGGING = logging_config(level=env.str("PLACET_LOG_LEVEL", default="INFO"))
