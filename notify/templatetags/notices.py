"""Template tags of being told: instants in the reader's zone."""

from datetime import datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.spans import iso
from notify import times
from notify.screens.telling import why

register = template.Library()


@register.simple_tag
def there(value: datetime | None, zone: str) -> SafeString:
    """Return an instant as the wall of the reader's zone shows it, and the ISO time beside. None gives a dash."""
    if value is None:
        return format_html("{}", "–")
    return format_html('<time datetime="{}">{}</time>', iso(value), times.shown(value, zone))


@register.filter
def because(problem: str) -> str:
    """Return the code of a failure in words."""
    return why(problem)
