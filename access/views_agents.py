"""Automations and their tokens: pages for admins, read by auditors."""

from datetime import datetime
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from access import actions, actions_agents
from access.enums import Scope
from access.filters import AgentFilter, TokenFilter
from access.forms_agents import Bounds, NewAgent, NewToken, Rotate, as_said
from access.forms_people import MayWhy, Why
from access.models import Agent, ApiToken
from access.screens.asking import (
    Asked,
    Once,
    actor_of,
    carry_out,
    do_and_say,
    is_sure,
    made_from,
    may_change,
    or_404,
    proven,
    reader_of,
    reads,
    show_once,
    writes,
)
from access.screens.people import by_word
from access.tables import AgentTable, TokenTable
from common.clock import db_clock
from common.cursors import BadCursor, page
from common.links import same_list


@reads
def agents(request: HttpRequest) -> HttpResponse:
    """All automations, by name."""
    valid = Q(tokens__revoked_at=None, tokens__expires_at__gt=db_clock())
    mine = Agent.objects.filter(tenant_id=reader_of(request).tenant_id).select_related("acts_for")
    found = AgentFilter(request.GET, queryset=mine.annotate(valid_tokens=Count("tokens", filter=valid)))
    listed = by_word(found.qs, "name", request.GET, reverse("people:agents"))
    context = {
        "listed": listed, "table": AgentTable(listed.rows), "filter": found, "may_change": may_change(request),
    }  # fmt: skip
    return render(request, "access/people/agents.html", context)


@reads
def tokens(request: HttpRequest) -> HttpResponse:
    """All tokens, newest first; what is stored of each is its beginning and its hash."""
    mine = ApiToken.objects.filter(tenant_id=reader_of(request).tenant_id).select_related("agent")
    found, here = TokenFilter(request.GET, queryset=mine), reverse("people:tokens")
    try:
        stretch = page(found.qs, list_name="tokens", cursor=request.GET.get("cursor", ""))
    except BadCursor:
        return redirect("people:tokens")
    context = {
        "table": TokenTable(_shaped(request, stretch.rows)), "filter": found, "listed": stretch.rows,
        "first": same_list(here, request.GET) if request.GET.get("cursor") else "",
        "more": same_list(here, request.GET, cursor=stretch.next_cursor) if stretch.next_cursor else "",
    }  # fmt: skip
    return render(request, "access/people/tokens.html", context)


@writes
@proven("people:new_agent")
def new_agent(request: HttpRequest) -> HttpResponse:
    """A new automation; its token is issued on its page."""
    reader = reader_of(request)
    mine = {"owner": reader.user_id}  # whoever makes it sees its token, so answers for it
    form = NewAgent(request.POST or None, tenant_id=reader.tenant_id, initial=mine)
    made, status = made_from(request, form, lambda: actions.create_agent(
        tenant=reader.tenant, name=form.cleaned_data["name"], by=actor_of(request), clock=db_clock, **form.bounds()
    ))  # fmt: skip
    if made is not None:
        messages.info(request, "Made. Issue its first token here.", "ok")
        return redirect("people:agent", made.pk)
    return render(request, "access/people/new_agent.html", {"form": form}, status=status)


@reads
def agent(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """One automation: for whom it acts, what it may ask for, its tokens."""
    return _page(request, _agent(request, agent_id))


@writes
@proven("people:agent")
def bounds(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Give it exactly these bounds."""
    found = _agent(request, agent_id)
    if request.method != "POST":
        return redirect("people:agent", agent_id)
    form = Bounds(request.POST, tenant_id=found.tenant_id)
    made, status = made_from(request, form, lambda: actions_agents.change_agent(
        agent=found, by=actor_of(request), clock=db_clock, **form.bounds()
    ))  # fmt: skip
    if made is not None:
        messages.info(request, "Saved. It counts from its next request on.", "ok")
        return redirect("people:agent", agent_id)
    return _page(request, found, bounds_form=form, status=status)


@writes
@proven("people:agent")
def deactivate(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """None of its tokens works from then on."""
    found = _agent(request, agent_id)
    points = [
        "All its tokens are refused at their next request.",
        "What it has proposed stays, and is decided on as before: withdraw or freeze that on its own page.",
    ]
    asked = _asked(request, found, f"Deactivate the automation {found.name}?", points, "Deactivate", Why)
    return do_and_say(
        request, asked, "Deactivated.",
        lambda why: actions.deactivate_agent(agent=found, by=actor_of(request), clock=db_clock, reason=why),
    )  # fmt: skip


@writes
@proven("people:agent")
def reactivate(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Tokens that are neither ended nor revoked work again."""
    found = _agent(request, agent_id)
    alive = found.tokens.filter(revoked_at=None, expires_at__gt=db_clock()).count()
    points = [f"Tokens that work again at once: {alive}. Revoke first those that shall not."]
    asked = _asked(request, found, f"Let {found.name} work again?", points, "Reactivate", MayWhy)
    return do_and_say(
        request, asked, "Reactivated.",
        lambda why: actions_agents.reactivate_agent(agent=found, by=actor_of(request), clock=db_clock, reason=why),
    )  # fmt: skip


@writes
@proven("people:agent")
def issue(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """A new token; its text is in the answer, and nowhere else."""
    found = _agent(request, agent_id)
    if request.method != "POST":
        return redirect("people:agent", agent_id)
    form = NewToken(request.POST)
    made, status = made_from(request, form, lambda: actions.issue_token(
        agent=found, scopes=[Scope(scope) for scope in form.cleaned_data["scopes"]], life=form.life,
        by=actor_of(request), clock=db_clock,
    ))  # fmt: skip
    if made is not None:
        return _show(request, found, *made)
    return _page(request, found, token_form=form, status=status)


@writes
@proven("people:rotate")
def rotate(request: HttpRequest, token_id: UUID) -> HttpResponse:
    """A new token in the place of this one, which goes on for a while."""
    found = _token(request, token_id)
    form = Rotate(request.POST if is_sure(request) else None)
    asked = Asked(
        title="Rotate", sentence=f"A new token in the place of {found.prefix}…?",
        points=[
            f"It may do the same: {', '.join(found.scopes) or 'read the catalog only'}.",
            "It lives as long as this one did.",
            "Its text is shown once. Put it where the automation reads it before the old one ends.",
        ],
        button="Make the new token", back=reverse("people:agent", args=[found.agent_id]), form=form, tab="tokens",
        harmless=True,
    )  # fmt: skip
    return carry_out(
        request, asked,
        lambda: actions_agents.rotate_token(token=found, overlap=form.overlap, by=actor_of(request), clock=db_clock),
        lambda made: _show(request, found.agent, *made),
    )  # fmt: skip


@writes
@proven("people:revoke")
def revoke(request: HttpRequest, token_id: UUID) -> HttpResponse:
    """End it now."""
    found = _token(request, token_id)
    used = (
        "It was never used."
        if found.last_used_at is None
        else f"Last used {found.last_used_at:%Y-%m-%d %H:%M} UTC."
    )
    points = ["It is refused at its next request, and never works again.", used]
    asked = _asked(request, found.agent, f"Revoke {found.prefix}…?", points, "Revoke", Why)
    return do_and_say(
        request, asked, "Revoked.",
        lambda why: actions.revoke_token(token=found, by=actor_of(request), clock=db_clock, reason=why),
    )  # fmt: skip


# -- parts ------------------------------------------------------------------------------------------------------


def _agent(request: HttpRequest, agent_id: UUID) -> Agent:
    mine = Agent.objects.filter(tenant_id=reader_of(request).tenant_id)
    found: Agent = or_404(mine.select_related("acts_for", "owner").filter(pk=agent_id).first())
    return found


def _token(request: HttpRequest, token_id: UUID) -> ApiToken:
    found: ApiToken = or_404(actions_agents.token_in(reader_of(request).tenant_id, token_id))
    return found


def _page(
    request: HttpRequest, found: Agent, *, bounds_form: Bounds | None = None, token_form: NewToken | None = None,
    status: int = 200,
) -> HttpResponse:  # fmt: skip
    rows = list(
        ApiToken.objects.filter(agent=found).select_related("agent").order_by("-created_at", "-id")[:50]
    )
    context = {
        "agent": found, "table": TokenTable(_shaped(request, rows), exclude=("agent",)),
        "may_change": may_change(request),
        "bounds_form": bounds_form or Bounds(initial=as_said(found), tenant_id=found.tenant_id),
        "token_form": token_form or NewToken(), "tokens": rows,
        "history": f"{reverse('audit:history')}?subject={found.pk}",
    }  # fmt: skip
    return render(request, "access/people/agent.html", context, status=status)


def _shaped(request: HttpRequest, rows: list[ApiToken]) -> list[ApiToken]:
    """With what the cells of their state and of what can be done need."""
    now, may = db_clock(), may_change(request)
    replaced = set(ApiToken.objects.filter(replaces__in=rows).values_list("replaces_id", flat=True))
    for row in rows:
        _shape(row, now, may, replaced=row.pk in replaced)
    return rows


def _shape(row: ApiToken, now: datetime, may: bool, *, replaced: bool) -> None:
    over = row.expires_at <= now
    row.is_over = over  # type: ignore[attr-defined]
    row.ends_soon = not over and row.expires_at <= now + actions_agents.WARN_BEFORE  # type: ignore[attr-defined]
    row.may_change = may and not over and row.revoked_at is None  # type: ignore[attr-defined]
    row.replaced = replaced  # type: ignore[attr-defined]


def _show(request: HttpRequest, found: Agent, text: str, row: ApiToken) -> HttpResponse:
    once = Once(
        title=f"A token for {found.name}", label="Token", text=text,
        says=(
            "It goes into the header Authorization, after the word Bearer.",
            f"It ends on {row.expires_at:%Y-%m-%d %H:%M} UTC. Fourteen days before, this page and the history say so.",
        ),
        back=reverse("people:agent", args=[found.pk]), back_word="To the automation", tab="automations",
    )  # fmt: skip
    return show_once(request, once)


def _asked(
    request: HttpRequest, found: Agent, sentence: str, points: list[str], button: str, form: type[forms.Form]
) -> Asked:
    bound = form(request.POST if is_sure(request) else None)
    back = reverse("people:agent", args=[found.pk])
    return Asked(found.name, sentence, points, button, back, bound, tab="automations")
