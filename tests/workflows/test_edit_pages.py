"""Editing on a page: JSON types are kept, what does not fit is told at its field, and nothing typed is lost."""

import re
from html import unescape
from typing import Annotated, Any

import pytest
from django.test import Client

from access.models import User
from approvals.models import Proposal
from common.fields import Arguments, Boolean, ChoiceType, Currency, Identifier, Integer, Money, TextType, arg
from tests.workflows.conftest import Desk
from tests.workflows.toy import ToyPay
from workflows.contracts import read_contract

pytestmark = pytest.mark.django_db
NO = False
TEXT = " Dear Ada,\n\n  thank you.\u200b \n"


class EditedArguments(Arguments):
    order: Identifier = arg(label="Order", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    times: Integer = arg(1, label="Times", data_class="business")
    urgent: Boolean = arg(NO, label="Urgent", data_class="business")
    kind: Annotated[str, ChoiceType(("late", "damaged"))] = arg("late", label="Kind", data_class="business")
    tags: list[Identifier] = arg([], label="Tags", data_class="business")
    until: Integer | None = arg(None, label="Until", data_class="business")
    message: Annotated[str, TextType(max_length=200)] = arg(TEXT, label="Message", data_class="personal")


@pytest.fixture(autouse=True)
def editable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyPay, "arguments", EditedArguments)
    may: tuple[str, ...] = ("amount", "times", "urgent", "kind", "tags", "until", "message")
    monkeypatch.setattr(ToyPay, "editable", may)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def form_of(client: Client, proposal: Proposal) -> dict[str, str]:
    """The fields as a browser would send them back untouched: line ends of its own, the first of a text area eaten."""
    html = client.get(f"/review/{proposal.pk}/edit/").content.decode()
    fields = {}
    for name, value in re.findall(r'<input type="(?:hidden|text)" name="(\w+)"(?: value="([^"]*)")?', html):
        fields[name] = unescape(value)
    for name, text in re.findall(r'<textarea name="(\w+)"[^>]*>(.*?)</textarea>', html, re.DOTALL):
        fields[name] = unescape(text).replace("\r\n", "\n").removeprefix("\n").replace("\n", "\r\n")
    for name, options in re.findall(r'<select name="(\w+)"[^>]*>(.*?)</select>', html, re.DOTALL):
        fields[name] = re.findall(r'value="(\w+)" selected', options)[0]
    fields.pop("csrfmiddlewaretoken", None)
    return fields


def send(client: Client, proposal: Proposal, **changes: Any) -> Any:
    return client.post(f"/review/{proposal.pk}/edit/", form_of(client, proposal) | changes)


def made(old: Proposal) -> Proposal:
    return Proposal.objects.get(supersedes=old)


def arguments(proposal: Proposal) -> Any:
    return read_contract(bytes(proposal.contract))["arguments"]


def test_only_what_was_changed_is_and_types_are_kept(desk: Desk) -> None:
    old = desk.proposed()
    answer = send(
        signed_in(desk.ada),
        old,
        times_text="3",
        urgent_text="true",
        kind_text="damaged",
        tags_text='["a", "b"]',
    )
    new = made(old)
    assert (answer.status_code, answer["Location"]) == (302, f"/review/{new.pk}/")
    assert arguments(new) == arguments(old) | {
        "times": 3, "urgent": True, "kind": "damaged", "tags": ["a", "b"],
    }  # fmt: skip
    assert arguments(new)["message"] == TEXT


def test_large_numbers_stay_what_they_are(desk: Desk) -> None:
    """Field report H4."""
    old = desk.proposed()
    client = signed_in(desk.ada)
    refused = send(client, old, times_text="2512292042121000001")
    assert refused.status_code == 422
    assert "2512292042121000001" in refused.content.decode()
    send(client, old, times_text="9007199254740991", until_text="0")
    assert (arguments(made(old))["times"], arguments(made(old))["until"]) == (9007199254740991, 0)


def test_a_text_is_changed_to_the_byte(desk: Desk) -> None:
    old = desk.proposed()
    send(signed_in(desk.ada), old, message_text=" 7 \r\n\u202eno ")
    assert arguments(made(old))["message"] == " 7 \n\u202eno "


@pytest.mark.parametrize(
    ("field", "value"), [("amount", "8.001"), ("amount", "8"), ("times", "1.5"), ("times", ""), ("tags", "a, b")]
)  # fmt: skip
def test_what_does_not_fit_stands_at_its_field(desk: Desk, field: str, value: str) -> None:
    old = desk.proposed()
    answer = send(signed_in(desk.ada), old, **{f"{field}_text": value, "until_text": "41"})
    html = answer.content.decode()
    if field == "amount" and value == "8":
        assert answer.status_code == 302
        return
    assert answer.status_code == 422
    assert f'id="edit-{field}_text_error"' in html
    assert 'value="41"' in html
    assert not Proposal.objects.filter(supersedes=old).exists()


def test_nothing_changed_is_said(desk: Desk) -> None:
    old = desk.proposed()
    assert send(signed_in(desk.ada), old).status_code == 422
    assert not Proposal.objects.filter(supersedes=old).exists()


def test_who_loses_is_told_who_won_and_keeps_what_was_typed(desk: Desk) -> None:
    ada, ben = signed_in(desk.ada), signed_in(desk.ben)
    old = desk.proposed()
    fields = form_of(ada, old) | {"amount_text": "7.77"}
    send(ben, old, amount_text="8.00")
    answer = ada.post(f"/review/{old.pk}/edit/", fields)
    html = answer.content.decode()
    assert answer.status_code == 409
    assert "ben put a newer version in its place at" in html
    assert 'value="7.77"' in html
    assert f"/review/{made(old).pk}/" in html
    decided = desk.proposed(order="2")
    fields = form_of(ada, decided) | {"amount_text": "7.77"}
    desk.decide(decided, "reject", user=desk.ben)
    html = ada.post(f"/review/{decided.pk}/edit/", fields).content.decode()
    assert "ben rejected it at" in html and 'value="7.77"' in html


def test_the_bar_leads_there_only_where_it_is_allowed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    old = desk.proposed()
    page = signed_in(desk.ada).get(f"/review/{old.pk}/").content.decode()
    assert f'href="/review/{old.pk}/edit/"' in page
    monkeypatch.setattr(ToyPay, "editable", ())
    assert (
        f'href="/review/{old.pk}/edit/"' not in signed_in(desk.ada).get(f"/review/{old.pk}/").content.decode()
    )
    assert signed_in(desk.ada).get(f"/review/{old.pk}/edit/").status_code == 422


def test_the_page_says_who_edited_what_and_whose_vote_is_gone(desk: Desk) -> None:
    from workflows.operations import Verdict

    desk.till.verdict = Verdict("ask_two", "toy.two", "It is a big toy.")
    old = desk.proposed()
    desk.decide(old, user=desk.ben)
    send(signed_in(desk.ada), old, amount_text="8.00")
    page = signed_in(desk.ben).get(f"/review/{made(old).pk}/").content.decode()
    assert "Edited by ada." in page and "Changed: Amount." in page
    assert "Your approval of version 1 does not count for this one." in page
    assert "What did it: Amount." in page
    own = signed_in(desk.ada).get(f"/review/{made(old).pk}/").content.decode()
    assert "You edited this version, so others decide on it." in own
    assert "Your approval" not in own


def test_a_remembered_rejection_is_told_and_lifted_on_its_page(desk: Desk) -> None:
    rejected, near, other = desk.proposed(order="1"), desk.proposed(order="1"), desk.proposed(order="2")
    desk.decide(rejected, "reject", user=desk.ben, remember="week", reason_code="wrong_amount")
    ada = signed_in(desk.ada)
    assert "The very same was rejected." in ada.get(f"/review/{near.pk}/").content.decode()
    assert "was rejected." not in ada.get(f"/review/{other.pk}/").content.decode()
    send(ada, near, amount_text="8.00")
    assert (
        "Something like it was rejected."
        in signed_in(desk.ben).get(f"/review/{made(near).pk}/").content.decode()
    )
    page = ada.get(f"/review/{rejected.pk}/").content.decode()
    assert "Remembered." in page and f'href="/review/{rejected.pk}/lift/"' in page
    assert ada.get(f"/review/{rejected.pk}/lift/").status_code == 200
    assert ada.post(f"/review/{rejected.pk}/lift/", {"why_text": ""}).status_code == 422
    assert ada.post(f"/review/{rejected.pk}/lift/", {"why_text": "A mistake."}).status_code == 302
    late = signed_in(desk.ben).post(f"/review/{rejected.pk}/lift/", {"why_text": "Me too."})
    assert late.status_code == 409
    assert "By ada, at" in late.content.decode() and "<q>Me too.</q>" in late.content.decode()
    page = ada.get(f"/review/{rejected.pk}/").content.decode()
    assert "ada lifted it at" in page and "“A mistake.”" in page


def test_votes_that_are_kept_are_told_with_the_reason(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field report C2."""
    from tests.workflows.test_carry_over import plan
    from workflows.operations import Verdict

    desk.till.verdict = Verdict("ask_two", "toy.two", "It is a big toy.")
    old = plan(desk).proposal
    desk.decide(old)
    assert plan(desk, supersedes=old).proposal.pk == old.pk
    page = signed_in(desk.ben).get(f"/review/{old.pk}/").content.decode()
    assert "Proposed again, unchanged." in page and "material digest" in page
