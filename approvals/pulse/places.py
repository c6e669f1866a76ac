"""Places in the history as pages are given them: sealed, and different each time.

A place counts the transactions of the whole installation. In clear it would tell one organisation how much the others
do.
"""

import hashlib
import os

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from django.conf import settings

_HALF = 8


def sealed(place: int) -> str:
    """32 hexadecimal digits."""
    encryptor = _cipher().encryptor()
    return (encryptor.update(os.urandom(_HALF) + place.to_bytes(_HALF, "big")) + encryptor.finalize()).hex()


def opened(text: str) -> int:
    """The place in it. What is not ours gives 0 or a place that no history has reached: neither is known."""
    try:
        block = bytes.fromhex(text)
    except ValueError:
        return 0
    if len(block) != 2 * _HALF:
        return 0
    decryptor = _cipher().decryptor()
    return int.from_bytes((decryptor.update(block) + decryptor.finalize())[_HALF:], "big")


def _cipher() -> Cipher[modes.ECB]:
    """One block, half of it random: there is nothing for a mode to chain."""
    key = hashlib.sha256(b"placet.pulse.v1\n" + settings.SECRET_KEY.encode()).digest()
    return Cipher(algorithms.AES256(key), modes.ECB())  # noqa: S305
