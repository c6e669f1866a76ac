"""Single values: one spelling for each, and a stable code for what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.fields import ArgumentsRefused, arguments_from


def one(kind: str, value: Any) -> Any:
    """The normalized value of a single argument of this type."""
    return arguments_from({"x": kind}).normalize({"x": value}).material["x"]


@pytest.mark.parametrize(
    ("kind", "value", "spelled"),
    [
        ("integer", 1.0, 1),
        ("decimal", "1.50", "1.5"),
        ("decimal", "-0.0", "0"),
        ("decimal", "-1.10", "-1.1"),
        ("datetime", "2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00Z"),
        ("datetime", "2026-10-25T00:30:00.500Z", "2026-10-25T00:30:00.5Z"),
        ("datetime", "0999-01-01T00:00:00Z", "0999-01-01T00:00:00Z"),
        ("url", "HTTPS://Pay.Example.COM:443/X?q=1#f", "https://pay.example.com/X?q=1#f"),
        ("url", "https://pay.example.com:8443", "https://pay.example.com:8443"),
        ("url", "https://аррӏе.com/", "https://xn--80ak6aa92e.com/"),
        ("email", "Ann@Example.com", "Ann@example.com"),
        ("text", "cafe\u0301", "cafe\u0301"),
        ("choice:a|b", "b", "b"),
        ("list:integer", [1, 2.0], [1, 2]),
    ],
)
def test_one_spelling(kind: str, value: Any, spelled: Any) -> None:
    assert one(kind, value) == spelled
    assert one(kind, spelled) == spelled


@pytest.mark.parametrize(
    ("kind", "value", "code"),
    [
        ("integer", 1.5, "number_not_integer"),
        ("integer", True, "type"),
        ("integer", "1", "type"),
        ("boolean", 1, "type"),
        ("decimal", 1.5, "decimal_must_be_string"),
        ("decimal", "1.0000000000001", "decimal_scale"),
        ("choice:a|b", "c", "choice_unknown"),
        ("text", 1, "type"),
        ("identifier", "", "identifier_charset"),
        ("identifier", "a b", "identifier_charset"),
        ("identifier", "acct\n", "identifier_charset"),
        ("identifier", "а", "identifier_charset"),
        ("identifier", "a" * 129, "identifier_length"),
        ("datetime", "2026-10-25T02:30:00", "datetime_format"),
        ("datetime", "2026-10-25 02:30:00Z", "datetime_format"),
        ("datetime", "2026-10-25T02:30:00-00:00", "datetime_unknown_offset"),
        ("datetime", "2026-12-31T23:59:60Z", "datetime_value"),
        ("datetime", "2026-02-30T00:00:00Z", "datetime_value"),
        ("datetime", "2026-02-03T00:00:00+24:00", "datetime_value"),
        ("datetime", "0001-01-01T00:00:00+01:00", "datetime_value"),
        ("datetime", "2026-02-03T00:00:00.1234567Z", "datetime_value"),
        ("datetime", 1767225600, "type"),
        ("url", "https://pay.example.com@evil.example/x", "url_userinfo"),
        ("url", "https://evil.example\\@pay.example.com/", "url_forbidden_char"),
        ("url", "https://pay.example.com/\u202egpj.exe", "url_forbidden_char"),
        ("url", "https://pay.example.com/ä", "url_forbidden_char"),
        ("url", "https://pay.example.com/%0d%0aHost:x", "url_forbidden_char"),
        ("url", "https://pay.example.com/%zz", "url_forbidden_char"),
        ("url", "javascript:alert(1)", "url_scheme"),
        ("url", "//evil.example/x", "url_not_absolute"),
        ("url", "https:evil.example", "url_not_absolute"),
        ("url", "https://127.1/", "url_ip_literal"),
        ("url", "https://0x7f000001/", "url_ip_literal"),
        ("url", "https://2130706433/", "url_ip_literal"),
        ("url", "https://１２７.0.0.1/", "url_ip_literal"),
        ("url", "https://[::1]/", "url_ip_literal"),
        ("url", "https://localhost/", "url_internal_name"),
        ("url", "https://metadata.google.internal/", "url_internal_name"),
        ("url", "https://pay%2eexample.com/", "url_host_encoding"),
        ("url", "https://pay..example.com/", "url_host"),
        ("url", "https://pay.example.com./", "url_host"),
        ("url", "https:///x", "url_host"),
        ("url", "https://xn--a.com/", "url_host"),
        ("url", "https://pay.example.com:0/", "url_port"),
        ("url", "https://pay.example.com:/", "url_port"),
        ("url", "https://pay.example.com:99999/", "url_port"),
        ("url", "https://pay.example.com/a/%2e%2E/admin", "url_dot_segment"),
        ("url", "https://pay.example.com/..", "url_dot_segment"),
        ("email", "ann@example.com,eve@evil.example", "email_format"),
        ("email", '"ann@example.com" <eve@evil.example>', "email_format"),
        ("email", "ann@exаmple.com", "email_format"),
        ("email", "ann@localhost", "email_format"),
        ("email", "ann", "email_format"),
        ("secret-ref", "hunter2", "secret_format"),
        ("secret-ref", {"secret_ref": "a", "fingerprint": "x"}, "secret_format"),
    ],
)
def test_refusals(kind: str, value: Any, code: str) -> None:
    with pytest.raises(ArgumentsRefused) as caught:
        one(kind, value)

    assert [(error.path, error.code) for error in caught.value.errors] == [("/x", code)]


def test_an_overflowing_number_for_an_integer_is_out_of_range() -> None:
    with pytest.raises(ArgumentsRefused) as caught:
        arguments_from({"n": "integer"}).normalize_bytes(b'{"n":1e999999999}')

    assert caught.value.code == "integer_out_of_range"


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_is_refused_or_kept_by_every_type(value: str) -> None:
    for kind in ("text", "identifier", "url", "email", "datetime", "decimal", "choice:a|b"):
        try:
            spelled = one(kind, value)
        except ArgumentsRefused:
            continue
        assert one(kind, spelled) == spelled
        assert kind != "text" or spelled == value
