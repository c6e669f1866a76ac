"""What people do with their own account: the writers of sign-ins, passwords, second factors and sessions.

Each is one transaction with its events. An account is the person's, not a tenant's: each of their tenants gets the
event, and the installation where there is none; so the system role does it. Names, addresses and secrets are in no
event.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth import authenticate
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from access import throttle
from access.models import Membership, User
from access.policies import check_can_manage, only_membership
from access.signing_keys import facts_of
from access.throttle import Limit, Throttled, check_limits, factor_limits, reset_limits, sign_in_limits
from audit.actions import Entry, record_many
from audit.actors import INSTALLATION, Actor
from common.clock import Clock
from common.errors import Refused
from common.tx import require_transaction, system_action

T = TypeVar("T")
_MADE: Final = Authenticator.Type.RECOVERY_CODES


class ResetOver(Refused):
    """This link was used before, or its hour is over. Ask for a new one."""

    code = "reset_over"


def may_sign_in(user: User) -> bool:
    """Whether the account is open, and leads anywhere: a member of a tenant, or staff of Django's admin."""
    return user.is_active and (user.is_staff or only_membership(user) is not None)


@system_action
def check_password(
    *,
    request: HttpRequest,
    username: str,
    password: str,
    address: str,
    by: Actor,
    clock: Clock,
    browser: str = "",
) -> User | None:
    """The person whose name and password these are, if they may sign in; else None, whatever the reason.

    Raises Throttled before it compares anything. An unknown name costs the same computation as a known one.
    """
    limits = sign_in_limits(username, address, browser)
    check_limits(throttle.FAILED, limits)
    user = authenticate(request, username=username, password=password)
    if isinstance(user, User) and may_sign_in(user):
        return user
    known = Membership.objects.filter(user__username=username, is_active=True)
    _record_failure("user.sign_in_failed", limits, known.order_by("id"), by)
    return None


@system_action
def note_failed_sign_in(*, address: str, by: Actor, clock: Clock, user: User | None = None) -> None:
    """A passkey or a provider led to nobody who may sign in; counts for the address.

    Beyond the address's limit nothing more is written: neither is guessed, and strangers must not fill the history.
    """
    limits = sign_in_limits("", address)[2:]
    try:
        check_limits(throttle.FAILED, limits)
    except Throttled:
        return
    known = Membership.objects.filter(user=user, is_active=True) if user else Membership.objects.none()
    _record_failure("user.sign_in_failed", limits, known.order_by("id"), by)


def check_factor(*, user: User, check: Callable[[], T], by: Actor, clock: Clock) -> T:
    """What ``check`` returns, which looks at one code or passkey of this person and uses it up.

    Raises the ValidationError of a wrong one, once it is counted; Throttled when there were too many.
    """
    found, wrong = _check_factor(user=user, check=check, by=by, clock=clock)
    if wrong is not None:
        raise wrong
    return cast("T", found)


@system_action
def _check_factor(
    *, user: User, check: Callable[[], T], by: Actor, clock: Clock
) -> tuple[T | None, ValidationError | None]:
    """The refusal is returned, not raised: raising it would undo that it was counted."""
    limits = factor_limits(user.id)
    check_limits(throttle.FACTOR_FAILED, limits)
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # factors come and go under this lock
    try:
        with transaction.atomic():
            return check(), None
    except ValidationError as error:
        known = Membership.objects.filter(user=user, is_active=True).order_by("id")
        _record_failure("user.second_factor_failed", limits, known, by)
        return None, error


@system_action
def use_passkey(*, check: Callable[[], T], by: Actor, clock: Clock) -> T:
    """What ``check`` returns, which uses up what a passkey answered; its person is known only afterwards."""
    return check()


class SignInOver(Refused):
    """What opened the account has changed meanwhile. Sign in again."""

    code = "sign_in_over"


@system_action
def open_session(
    *,
    user: User,
    still: Callable[[User, Mapping[int, str]], bool],
    begin: Callable[[], None],
    by: Actor,
    clock: Clock,
) -> None:
    """Let ``begin`` open a session if ``still`` says that what the person proved proves it, of their factors as of now.

    Under the person's lock: who takes a factor off, or changes the password, either finds the session and ends it, or
    is found here. Raises SignInOver.
    """
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not (may_sign_in(locked) and still(locked, _factors(locked))):
        raise SignInOver
    begin()


@system_action
def note_sign_in(*, user: User, methods: Collection[str], by: Actor, clock: Clock) -> None:
    """The person signed in, by these methods."""
    _note("user.signed_in", user, by, body={"methods": sorted(set(methods))})


@system_action
def note_confirmed(*, user: User, method: str, digest: str, by: Actor, clock: Clock) -> None:
    """The person confirmed that it is them: for the action with ``digest``, or for their account."""
    _note("user.reauthenticated", user, by, digest=digest, body={"method": method})


@system_action
def ask_for_reset(*, email: str, address: str, users: Collection[User], by: Actor, clock: Clock) -> None:
    """Somebody asked for a mail with a link to a new password. Raises Throttled."""
    limits = reset_limits(email, address)
    check_limits(throttle.RESET_REQUESTED, limits)
    known = Membership.objects.filter(user__in=users, is_active=True).order_by("id")
    _record_failure("user.password_reset_requested", limits, known, by)


@system_action
def change_password(*, user: User, password: str, by: Actor, clock: Clock, keep: str = "") -> None:
    """A new password, by somebody who knew the old one. Every other session than ``keep`` is over."""
    _set_password(user, password)
    ended = end_sessions(user.id, keep=keep)
    _note("user.password_changed", user, by, body={"sessions_ended": ended})


@system_action
def reset_password(
    *, user: User, password: str, still_valid: Callable[[User], bool], by: Actor, clock: Clock
) -> None:
    """A new password, by a link from a mail. Every session is over, and second factors stay.

    Raises ResetOver when the link was used meanwhile, or the account closed.
    """
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not (locked.is_active and still_valid(locked)):
        raise ResetOver
    _set_password(user, password)
    ended = end_sessions(user.id)
    _note("user.password_reset", user, by, body={"sessions_ended": ended})


@system_action
def change_factors(
    *, user: User, change: Callable[[], T], by: Actor, clock: Clock, keep: str | None = None
) -> T:
    """Let ``change`` add or remove second factors of this person, and record what has become of them.

    With ``keep``, every other session is over when a factor is removed, which may be in somebody else's hands, and when
    there was none: they were opened by a password alone.
    """
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    before, keys = _factors(user), _keys(user)
    result = change()
    after = _factors(user)
    for pk in sorted(before.keys() - after.keys()):
        if before[pk] != _MADE or not after:
            _note("user.mfa_removed", user, by, body={"factor": before[pk], **keys.get(pk, {})})
    added = sorted(after.keys() - before.keys())
    keys = _keys(user) if added else {}
    for pk in added:
        if after[pk] == _MADE:
            _note("user.recovery_codes_made", user, by)
        else:
            _note("user.mfa_added", user, by, body={"factor": after[pk], **keys.get(pk, {})})
    if keep is not None and _loses_or_gains_the_first(before, after):
        ended = end_sessions(user.id, keep=keep)
        if ended:
            _note("user.session_revoked", user, by, body={"sessions_ended": ended})
    return result


def _loses_or_gains_the_first(before: dict[int, str], after: dict[int, str]) -> bool:
    real, left = ({pk for pk, kind in factors.items() if kind != _MADE} for factors in (before, after))
    return bool(real - left) or bool(left and not real)


def remove_factors(*, user: User, by: Actor, clock: Clock) -> int:
    """Take every second factor from somebody who has lost them; how many. Their sessions end.

    For somebody who manages people in each of the person's tenants, and for the command line. Raises RoleMissing.
    """
    for tenant_id in _tenants_of(user):
        check_can_manage(by, tenant_id)

    def remove() -> int:
        found = Authenticator.objects.filter(user=user)
        count: int = found.count()
        found.delete()
        end_sessions(user.id)
        return count

    return change_factors(user=user, change=remove, by=by, clock=clock)


@system_action
def revoke_session(*, user: User, session_id: int, by: Actor, clock: Clock) -> str:
    """End one session of this person; its key, empty when there is no such session of theirs (any more)."""
    found = UserSession.objects.select_for_update().filter(user=user, pk=session_id).first()
    if found is None:
        return ""
    _end([found.session_key])
    _note("user.session_revoked", user, by, body={"sessions_ended": 1})
    return str(found.session_key)


@system_action
def revoke_other_sessions(*, user: User, keep: str, by: Actor, clock: Clock) -> int:
    """End every session of this person but ``keep``; how many."""
    ended = end_sessions(user.id, keep=keep)
    if ended:
        _note("user.session_revoked", user, by, body={"sessions_ended": ended})
    return ended


@system_action
def link_provider(*, user: User, link: Callable[[], T], provider: str, by: Actor, clock: Clock) -> T:
    """Let ``link`` connect the account of a provider with this person."""
    result = link()
    _note("user.provider_linked", user, by, body={"provider": provider})
    return result


@system_action
def unlink_provider(*, user: User, unlink: Callable[[], T], provider: str, by: Actor, clock: Clock) -> T:
    """Let ``unlink`` take the account of a provider from this person."""
    result = unlink()
    _note("user.provider_unlinked", user, by, body={"provider": provider})
    return result


def end_sessions(user_id: UUID, *, keep: str = "") -> int:
    """Part of an action: the sessions of this person are gone, but the one with the key ``keep``; how many were."""
    require_transaction()
    sessions = UserSession.objects.filter(user_id=user_id).exclude(session_key=keep)
    return _end(list(sessions.values_list("session_key", flat=True)))


@system_action
def forget_ended_sessions(*, clock: Clock, limit: int = 1000) -> int:
    """Remove the rows of sessions that are over, so many at a time. Nobody could use them any more: it is no event."""
    over = Session.objects.filter(expire_date__lt=clock())
    return _end(list(over.values_list("session_key", flat=True)[:limit]))


def _end(keys: list[str]) -> int:
    ended = Session.objects.filter(session_key__in=keys).delete()[0]
    UserSession.objects.filter(session_key__in=keys).delete()
    return ended


def _set_password(user: User, password: str) -> None:
    user.set_password(password)
    user.save(update_fields=["password"])


def _factors(user: User) -> dict[int, str]:
    return dict(Authenticator.objects.filter(user=user).values_list("pk", "type"))


def _keys(user: User) -> dict[int, dict[str, str]]:
    """Of their passkeys, what the history keeps: whoever checks a signature later needs to know whose key it was."""
    rows = Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN)
    return {row.pk: facts_of(row) for row in rows}


def _tenants_of(user: User) -> list[UUID]:
    places = Membership.objects.filter(user=user, is_active=True).order_by("id")
    return list(places.values_list("tenant_id", flat=True)) or [INSTALLATION]


def _note(
    kind: str, user: User, by: Actor, *, digest: str = "", body: Mapping[str, Any] | None = None
) -> None:
    record_many(
        [
            Entry(
                by=by, kind=kind, tenant_id=tenant_id, subject_type="user", subject_id=user.id, digest=digest,
                body=body,
            )
            for tenant_id in _tenants_of(user)
        ]
    )  # fmt: skip


def _record_failure(kind: str, limits: Collection[Limit], known: Any, by: Actor) -> None:
    """Counted for the installation under pseudonyms; where there is such a person, their tenants learn of it too."""
    places = [(INSTALLATION, limit.subject_type, limit.subject) for limit in limits]
    places += [
        (tenant_id, "user", user_id) for tenant_id, user_id in known.values_list("tenant_id", "user_id")
    ]
    record_many(
        [
            Entry(by=by, kind=kind, tenant_id=tenant_id, subject_type=subject_type, subject_id=subject_id)
            for tenant_id, subject_type, subject_id in places
        ]
    )
