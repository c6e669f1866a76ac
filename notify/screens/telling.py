"""Words for the pages of admins: how mails leave, and what a code of a failure means."""

from typing import Final

from django.conf import settings

from notify.enums import DispatchStatus
from notify.models import Dispatch

_FILES: Final = "filebased"
_WORDS: Final = {
    "gave_up": "Every try failed, or killed the process that made it.",
    "no_address": "The address is none that mail can go to.",
    "not_made": "It could not be made; the log says why.",
    "deactivated": "The destination was ended while it waited.",
    "refused": "The receiver answered that it does not take it.",
    "redirect": "The receiver answered with a redirect, which is not followed.",
    "over": "It was decided, or nothing is asked any more.",
    "too_late": "Its time was over.",
    "not_theirs": "It no longer concerned them: they left, lost the role, or have done their part.",
}


def leaves_by() -> tuple[bool, str]:
    """Whether mails leave this machine, and how."""
    backend = settings.EMAIL_BACKEND
    if backend.endswith("smtp.EmailBackend"):
        return (
            True,
            f"Mails go to {settings.EMAIL_HOST}, port {settings.EMAIL_PORT}, from {settings.DEFAULT_FROM_EMAIL}.",
        )
    if _FILES in backend:
        return False, f"No mail server is configured: mails become files in {settings.EMAIL_FILE_PATH}."
    return False, "No mail server is configured: mails are printed, or kept in memory."


def why(problem: str) -> str:
    """A code in words, with the code where it says more."""
    if problem in _WORDS:
        return _WORDS[problem]
    kind, _, rest = problem.partition("_")
    if kind == "smtp" and rest.isdecimal():
        sort = "refused it for good" if rest.startswith("5") else "refused it for now"
        return f"The mail server {sort} ({rest})."
    if problem.startswith("no_server_"):
        return f"The mail server could not be reached ({problem.removeprefix('no_server_')})."
    if problem.startswith("not_sent_"):
        return f"Nothing could be sent there ({problem.removeprefix('not_sent_')})."
    if problem.startswith("no_answer_"):
        return f"There was no complete answer ({problem.removeprefix('no_answer_')})."
    return problem.replace("_", " ") or "Not known."


def state_of(dispatch: Dispatch) -> str:
    """For the list of one destination."""
    tries = f"{dispatch.tries} {'try' if dispatch.tries == 1 else 'tries'}"
    if dispatch.status == DispatchStatus.PENDING:
        return f"waiting, {tries} so far" + (f": {why(dispatch.problem)}" if dispatch.problem else "")
    if dispatch.status == DispatchStatus.DELIVERED:
        return "delivered"
    return f"{dispatch.get_status_display().lower()}: {why(dispatch.problem)}"
