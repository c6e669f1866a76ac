"""Mails leave in the background: how long an answer takes must not tell whether there was somebody to write to."""

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from django.core.mail import EmailMessage
from django.db import transaction

logger = logging.getLogger(__name__)
_post: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mail")


def post(message: EmailMessage) -> None:
    """Send when the running transaction, if any, has committed. What cannot be sent is logged, and asked for again."""
    transaction.on_commit(lambda: _post.submit(_send, message))


def wait_until_posted() -> None:
    """Return when everything given to `post` so far has been sent or has failed."""
    _post.submit(lambda: None).result()


def _send(message: EmailMessage) -> None:
    try:
        message.send()
    except Exception:
        logger.exception("mail_failed")
