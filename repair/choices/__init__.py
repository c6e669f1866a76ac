"""The next moves of a stopped run: declared, offered where they are safe, shown before they are made, and made once."""

from repair.choices.declared import Choices
from repair.choices.offering import offered

__all__ = ["Choices", "offered"]
