"""What a chat system is sent: the shape that incoming webhooks commonly take, ``{"text": …}``, and blocks beside it."""

from typing import Any

from django.conf import settings

from common.spans import iso
from notify.anchors import note_of
from notify.enums import Style
from notify.kinds import kind_of
from notify.models import Message
from notify.texts import for_chat, grouped


def body_of(message: Message, style: str) -> dict[str, Any]:
    """Leads with the effect. The link is the page itself: who opens it signs in, and sees what their roles see."""
    facts = [f"{for_chat(label)}: {for_chat(text)}" for label, text in message.facts]
    if message.digest:
        facts.insert(0, f"Digest: {grouped(message.digest)}")
    if message.until:
        facts.append(f"Until: {iso(message.until)}")
    lead, title, link = (
        for_chat(message.lead),
        kind_of(message.kind).title,
        f"{settings.PLACET_BASE_URL}{message.href}",
    )
    note = note_of(message)
    text = "\n".join([lead, f"{title}.", *facts, *([f"```\n{note}```"] if note else []), link])
    if style != Style.BLOCKS:
        return {"text": text}
    return {
        "text": text,
        "blocks": [
            {"type": "section", "text": {"type": "plain_text", "text": lead}},
            {"type": "section", "text": {"type": "plain_text", "text": "\n".join([f"{title}.", *facts])}},
            *([{"type": "section", "text": {"type": "mrkdwn", "text": f"```\n{note}```"}}] if note else []),
            {"type": "section", "text": {"type": "mrkdwn", "text": f"<{link}|Open>"}},
        ],
    }
