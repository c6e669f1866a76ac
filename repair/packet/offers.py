"""The next moves as the document names them: which are offered to whoever reads it, and which are not, and why."""

from repair.choices.declared import Choices, Offer
from repair.packet.texts import Part


def offers_part(choices: Choices) -> list[Part]:
    """In the order of the page; where nothing is offered to this reader, the one reason stands for all."""
    if choices.why_none:
        return [{"code": None, "title": None, "offered": False, "why_not": None, "says": choices.why_none}]
    return [_offer(offer) for offer in (*choices.offered, *choices.refused)]


def _offer(offer: Offer) -> Part:
    return {
        "code": offer.choice.code, "title": offer.choice.title, "offered": offer.offered,
        "why_not": offer.code or None, "says": offer.choice.says if offer.offered else offer.words,
        "needs": list(offer.choice.needs),
    }  # fmt: skip
