"""Where a page of the desk begins to listen."""

from django import template
from django.http import HttpRequest

from approvals.pulse.listener import listener
from approvals.pulse.memory import memory
from approvals.pulse.reading import rights_of
from common.display import visible

register = template.Library()


@register.inclusion_tag("approvals/includes/pulse.html")
def pulse(request: HttpRequest) -> dict[str, str]:
    """An element that says from which place on, with which rights, and for whom this page was made."""
    membership = getattr(request, "membership", None)
    if membership is None:
        return {"cursor": "", "rights": "", "me": ""}
    listener.attend()
    groups = membership.groups.values_list("id", flat=True)
    me = visible(str(membership.user))
    return {"cursor": memory.beginning(), "rights": rights_of(membership.roles, groups), "me": me}
