"""Template tags of the pages of people."""

from django import template
from django.utils.safestring import SafeString

from access.screens.people import Tab, tabs
from common.display import visible
from common.templatetags.desk import exact

register = template.Library()


@register.filter
def plain(value: object) -> str:
    """Return text with its hidden characters shown, for places that take no markup: titles, words for readers."""
    return visible(str(value))


@register.filter
def shown(value: object) -> SafeString:
    """Return stored text for the page: escaped, each hidden or misleading character as a sign of its own."""
    return exact(visible(str(value)))


@register.simple_tag
def people_tabs(current: str) -> list[Tab]:
    """Return the pages of this part of the desk, with the one that is open."""
    return tabs(current)
