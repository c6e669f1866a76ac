"""The rows of the queue as markup. A page has dozens of them: put together here they cost a tenth of a template's."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.screens.queue_rows import Mark, QueueRow
from common.templatetags.desk import exact, icon, ring

register = template.Library()


@register.simple_tag
def queue_row(row: QueueRow, kinds: str) -> SafeString:
    """Return one row. ``kinds``: the address of the list, to which ``alike=`` is added.

    The ring, the words and the order all follow from *decide by*. What a script changes in place has a class of its
    own.
    """
    return _many(row, f"{kinds}{row.kind}") if row.many else _one(row, f"{kinds}{row.kind}")


def _one(row: QueueRow, address: str) -> SafeString:
    return format_html(
        '<li class="item" id="row-{id}" data-row="{id}">{ring}<a href="{href}" aria-describedby="left-{id}"'
        ' hx-get="{href}" hx-target="#pane" hx-swap="innerHTML" hx-push-url="true">{summary}</a>{amount}'
        '<span class="meta">{meta}{held}{more}</span>{left}</li>',
        id=row.id, ring=ring(row.tone, row.filled), href=row.href, summary=exact(row.summary), amount=_amount(row),
        meta=_meta(row), held=_held(row), more=_more(row, address), left=_left(row, ""),
    )  # fmt: skip


def _many(row: QueueRow, address: str) -> SafeString:
    return format_html(
        '<li class="item alike" id="row-{id}" data-row="{id}">{stack}<a href="{href}" aria-describedby="left-{id}"'
        ' hx-get="{href}" hx-target="#queue" hx-swap="innerHTML" hx-push-url="true">{alike} alike, such as:'
        ' {summary}</a>{amount}<span class="meta">{meta}</span>{left}</li>',
        id=row.id, stack=icon("stack"), href=address, alike=row.alike, summary=exact(row.summary),
        amount=_amount(row), meta=_meta(row), left=_left(row, "the first has "),
    )  # fmt: skip


def _amount(row: QueueRow) -> str:
    together = format_html('<span class="sr">{}</span>', "together ") if row.many else ""
    return format_html('<span class="amount">{}{}</span>', together, row.amount) if row.amount else ""


def _meta(row: QueueRow) -> SafeString:
    return format_html(
        "<code>{}</code><span>{}</span><span>{} old</span>{}",
        row.operation, row.workflow, row.age, format_html_join("", "{}", ((_mark(one),) for one in row.marks)),
    )  # fmt: skip


def _mark(mark: Mark) -> SafeString:
    return format_html(
        '<span class="{}" data-tone="{}">{}<span>{}</span></span>',
        f"mini {mark.name}".strip(),
        mark.tone,
        icon(mark.icon),
        mark.words,
    )


def _held(row: QueueRow) -> SafeString:
    if row.holder is None:
        return format_html(
            '<span class="mini held" data-tone="mute" hidden>{}<span></span></span>', icon("pin")
        )
    by = "you" if row.holder.mine else format_html("<bdi>{}</bdi>", exact(row.holder.name))
    return format_html(
        '<span class="mini held" data-tone="mute">{}<span>Held by {}</span></span>', icon("pin"), by
    )


def _more(row: QueueRow, address: str) -> str:
    if row.alike < 2:
        return ""
    return format_html(
        '<a class="mini more" data-tone="mute" href="{href}" hx-get="{href}" hx-target="#queue" hx-swap="innerHTML"'
        ' hx-push-url="true">{icon}{alike} alike</a>',
        href=address, icon=icon("stack"), alike=row.alike,
    )  # fmt: skip


def _left(row: QueueRow, of: str) -> SafeString:
    return format_html(
        '<span class="left" id="left-{}" data-tone="{}"><span class="sr">{}time left: </span>{}</span>',
        row.id, row.tone, of, row.left,
    )  # fmt: skip
