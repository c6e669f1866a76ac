"""Links in mails: they name a notice, and are signed for the person it belongs to.

They give no right. Whoever opens one signs in as always, and sees a page; nothing is read, decided or marked by it. The
signature keeps addresses that nobody was sent from being looked up.
"""

from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.signing import Signer
from django.urls import reverse

from common.digests import same

_SALT: Final = "placet.notice.link"


def signature_of(notice_id: UUID, user_id: UUID) -> str:
    return Signer(salt=_SALT).signature(f"{notice_id}:{user_id}")


def link_to(notice_id: UUID, user_id: UUID) -> str:
    return reverse("notify:link", args=[notice_id, signature_of(notice_id, user_id)])


def is_signed(notice_id: UUID, user_id: UUID, signature: str) -> bool:
    """Also under keys that were the secret before."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    named = f"{notice_id}:{user_id}"
    return any(same(Signer(key=key, salt=_SALT).signature(named), signature) for key in keys)
