"""All choices, in the order in which they are offered."""

from typing import Final

from repair.choices import asking, ending, learning, outcome, owning, record, undoing
from repair.choices.declared import Choice

CHOICES: Final[tuple[Choice, ...]] = (
    owning.TAKE, *outcome.FAMILY, *record.FAMILY, *asking.FAMILY, *undoing.FAMILY,
    *owning.FAMILY[1:], *ending.FAMILY, *learning.FAMILY,
)  # fmt: skip
BY_CODE: Final = {choice.code: choice for choice in CHOICES}
IN_BULK: Final = tuple(choice for choice in CHOICES if choice.in_bulk)
