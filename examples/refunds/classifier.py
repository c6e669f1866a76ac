"""What a message is about: an interface that real models can stand behind, and a few rules that stand there now.

A classifier suggests and decides nothing. What it returns is untrusted: `examples.refunds.suggestions` checks it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

RULES = "examples.refunds.classifier.RuleBasedClassifier"


class Classifier(Protocol):
    """Reads one message as data and suggests a category. ``version`` grows when its answers may change."""

    name: str
    version: int

    def classify(self, message: str, *, order: str) -> Mapping[str, Any]:
        """The raw suggestion. May raise SourceDown or RateLimited where a service stands behind it."""


def installed() -> Classifier:
    """The classifier that the setting ``PLACET_REFUNDS_CLASSIFIER`` names by its dotted path, else the rules."""
    made: Classifier = import_string(getattr(settings, "PLACET_REFUNDS_CLASSIFIER", RULES))()
    return made


@dataclass(frozen=True, slots=True)
class Rule:
    """``category`` with a reason (refunds) or a topic (all else), where the pattern is found."""

    category: str
    detail: str
    confidence: str
    pattern: re.Pattern[str]


def _rule(category: str, detail: str, confidence: str, pattern: str) -> Rule:
    return Rule(category, detail, confidence, re.compile(pattern, re.IGNORECASE))


_REFUND = r"(?:refund\w*|rebate|money back|reimburse\w*)"
_ODD = r"(?:wrong|incorrect\w*|not (?:right|correct)|off\b|bad\b|weird|strange|unfair|higher|too (?:much|high)|inaccurate|mistake|error)"
_RATE = r"(?:exchange|conversion|currency|foreign|abroad|rates?\b|convert\w*)"
_FEE = r"(?:fees?|charges?|charged|charging|cost|pounds?|[£$€]\s?\d|\d\s?[£$€])"
_CARD = r"(?:cards?\b|visa|mastercard)"

RULE_LIST: tuple[Rule, ...] = (
    # A lost card that was found again is an errand, not an alarm.
    _rule("other_topic", "cards", "0.86",
          r"re-?activ\w+|re-?establish|re-?link\w*|\bfound\b.{0,60}\bcard|\bcard.{0,80}\b(?:found|located)\b|no longer lost"),
    # Somebody else's hand in it comes first: no wish for money back must hide it.
    _rule("other_topic", "security", "0.92",
          r"stolen|\bstole\b|\blost\b.{0,30}\b(?:card|phone|wallet|bag|purse)|(?:card|phone|wallet).{0,25}\b(?:lost|missing|gone)\b"
          r"|can(?:'|no)?t find my (?:card|phone)|misplaced|freez\w+ my card|fell out|took my card|left my card|fraud|compromised|hacked|theft|robbed|mugged"),
    _rule("other_topic", "security", "0.85",
          r"(?:did ?n[o']?t|never|not|haven'?t|don'?t) (?:\w+ )?(?:make|made|authori[sz]e|do|done|recogni[sz]e|approve)\b"
          r"|unrecogni[sz]ed|unauthori[sz]ed|not (?:mine|familiar)|without my (?:consent|permission)|someone else"),
    # Nothing of ours: cash from a machine, whatever else is said about money back.
    _rule("other_topic", "cash", "0.88", r"\bcash\b(?!\s?-?back)|\batms?\b|withdr\w+"),
    # Refunds.
    _rule("refund", "refund_missing", "0.88",
          r"(?:my|the|this|that|a) refund\w*.{0,60}(?:\bnot|n't|never|missing|where|yet\b|late\b|long\b|status|still|find|see|show|hit|pending|access)"
          r"|(?:where (?:is|are|has|can)|waiting|status|find|see|still|what happened|missing|receive|did (?:i )?not|have ?n.t).{0,30}\b(?:my|the|a|that) refund"),
    _rule("refund", "charged_twice", "0.90",
          r"(?:multiple|several) (?:times )?(?:charg\w*|payments|bill\w*|debit\w*)"
          r"|(?:twice|double|two times|duplicate\w*|repeated|more than once|second time) ?(?:\w+ )?(?:times )?"
          r"(?:charg\w*|payments?\b|paid|transact\w*|bill\w*|purchase|debit\w*)"
          r"|(?:charg\w*|pay\w*|paid|transact\w*|bill\w*|debit\w*|showing).{0,40}(?:twice|doubled?\b|two times|duplicate\w*|multiple times|several times|more than once)"),
    _rule("refund", "damaged", "0.88",
          r"(?:damaged|broken|defective|faulty|torn|cracked|(?:do|does) ?n[o']?t work|do not work|does not work|wrong (?:item|size|colou?r)|spoiled|spoilt)"
          rf".{{0,120}}{_REFUND}|{_REFUND}.{{0,120}}(?:damaged|broken|defective|faulty|torn|cracked|wrong item)"
          r"|(?:arrived|came|delivered|received).{0,40}(?:damaged|broken|defective|faulty|torn|cracked)"),
    _rule("refund", "not_received", "0.86",
          r"(?:(?:was|were) never delivered|never (?:arrived|came|received|got|(?:been |were |was )?delivered)|not (?:arrived|been delivered|received)|has ?n[o']?t (?:arrived|come)|did ?n[o']?t (?:arrive|get|receive))"
          rf".{{0,120}}{_REFUND}|{_REFUND}.{{0,120}}(?:never (?:arrived|came|received)|not (?:arrived|received)|has ?n[o']?t arrived)"
          r"|(?:order|parcel|item|package|delivery).{0,40}(?:never (?:arrived|came)|not arrived|has ?n[o']?t (?:arrived|come))"),
    _rule("refund", "unwanted", "0.84",
          rf"(?:want|need|like|get|request|give|how|can|please|able|possible|demand|claim|issue).{{0,80}}\b{_REFUND}"
          rf"|\b{_REFUND}.{{0,80}}(?:please|want|need|request|possible|how|get|order|item|purchase|process|policy)|^\W*{_REFUND}"
          r"|(?:cancel\w*|retract|stop|reverse).{0,30}(?:purchase|order\b|order\.|payment\b.{0,60}item)|(?:purchases?|order|item) (?:\w+ ){0,2}cancel\w*|bought.{0,60}stop payment|back my money|(?:return|refund) (?:policy|procedure)|\breturn it\b|did not receive my purchase|product was faulty|return.{0,30}(?:item|product|purchase|order)|changed my mind"),
    # Everything that names another subject, before amounts that are only a little too high.
    _rule("other_topic", "cash", "0.84", r"\bcash\b|\bmachine\b"),
    _rule("other_topic", "top_ups", "0.88", r"top(?:ped|ping)?[- ]?\s?ups?|\btop(?:ped|ping)? (?:it|my|up)|auto[- ]?top|add(?:ing|ed)? (?:money|funds)|\btop\b"),
    _rule("other_topic", "transfers", "0.88", r"transfer\w*|beneficiary|standing order|direct debit|wire\b|receive money|salary|deposit\w*|cheque|sepa|swift"),
    _rule("other_topic", "account", "0.88",
          r"\bage\b|years? old|how old|children|\bkids?\b|under 18|minor\b|my (?:son|daughter|child)|teen|open(?:ing)? an account|clos\w+ my account|close (?:the|my)"
          r"|terminate|delete my account|details|address|verif\w+|identit\w+|source of (?:funds|money)|passcode|password|log ?in|name change|\bapp crash"),
    _rule("other_topic", "cards", "0.90",
          r"\bpin\b|\bpin ?code|contact[- ]?less|unblock\w*|blocked|activat\w+|virtual card|disposable|spare card|second card|expir\w+|apple pay|google pay|swallow\w*"
          rf"|{_CARD}.{{0,70}}(?:arriv\w*|deliver\w*|come|came|ship\w*|mail\w*|track\w*|wait\w*|receiv\w*|link\w*|add\b|added|connect\w*|reactivat\w*|work\w*|working|broken|declin\w*|reject\w*|fail\w*|accept\w*|here|get to|sent|post\b|address|broke|function\w*|use\b|put|view|back|found)"
          rf"|(?:arriv\w*|deliver\w*|ship\w*|track\w*|wait\w*|when|receiv\w*|link\w*|\badd|connect\w*|reactivat\w*|order\w*|get|put|found|express|using|use|fix|wrong with).{{0,70}}\b{_CARD}|declin\w+"),
    # More was taken than should have been.
    _rule("refund", "overcharged", "0.86",
          rf"{_RATE}.{{0,140}}(?:{_ODD}|over ?charg\w*|charged (?:me )?(?:too|extra|more)|more than (?:i|it)|extra|is ?n't (?:right|correct)|n't (?:look|seem|give me the|receive the) (?:right|correct)|was ?n't given|did not (?:give|receive)|issue with|problem with|terrible)"
          rf"|(?:{_ODD}|over ?charg\w*|charged (?:me )?(?:too|extra|more)|charged? more than|extra|what i was).{{0,140}}{_RATE}|rate (?:\w+ ){{0,5}}different"),
    _rule("refund", "overcharged", "0.86",
          rf"(?:extra|additional|added|unexpected|unknown|strange|random|weird|odd|hidden|mysterious|unexplained|surprise|another|wrong|wrongly|over|too much|more than|should not|shouldn'?t).{{0,60}}{_FEE}"
          rf"|{_FEE}.{{0,60}}(?:extra|additional|added|unexpected|over|too much|more than|i do ?n[o']?t|statement|for what|what (?:is|was)|why|shouldn'?t|wrong\w*|from|on my|in my|transaction)"
          rf"|(?:why|what|how come|where|see|is there|there is|there'?s|noticed|saw|got|was|paid|pay|i'?m|been|am|explain).{{0,80}}{_FEE}"),
    # What is left of cards, currencies and payments.
    _rule("other_topic", "exchange", "0.84", r"exchang\w*|currenc\w*|convert\w*|conversion|\brates?\b|\bfiat\b|\b(?:eur|usd|gbp|euros?|dollars?|aud|rubles?|yen)\b|crypto|multiple"),
    _rule("other_topic", "payments", "0.80", r"payments?\b|transaction|purchase|paid|merchant|revert\w*|pending"),
    _rule("other_topic", "cards", "0.80", rf"{_CARD}|deliver\w*|arrive|track\w*|shipping|express|days"),
    _rule("other_topic", "account", "0.74", r"countr\w*|account|app\b|support\w*|phone|\bid\b|balance|money|hold|service|europe|location"),
)  # fmt: skip


class RuleBasedClassifier:
    """Ordered patterns; the first that is found wins, and what was found is the evidence."""

    name = "rules"
    version = 1

    def classify(self, message: str, *, order: str) -> Mapping[str, Any]:
        for rule in RULE_LIST:
            if found := rule.pattern.search(message):
                return _suggestion(rule, found[0])
        return {"category": "unclear", "detail": "", "confidence": "0.30", "quotes": []}


def _suggestion(rule: Rule, quote: str) -> Mapping[str, Any]:
    return {
        "category": rule.category, "detail": rule.detail, "confidence": rule.confidence, "quotes": [quote[:200]],
    }  # fmt: skip
