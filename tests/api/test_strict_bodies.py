"""Bodies are strict JSON of a limited size, or are refused before anything else happens."""

import gzip

import pytest

from tests.api.callers import JSON, Caller, as_json, refused, run_body
from tests.api.conftest import World
from workflows.models import Run

pytestmark = pytest.mark.django_db

WRITES = ["/runs", "/proposals", "/runs/{id}/cancel", "/runs/{id}/data", "/proposals/{id}/withdraw"]
SOME = "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"


def nested(depth: int) -> bytes:
    return b'{"reason":' + b"[" * depth + b"]" * depth + b"}"


CASES = [
    (b" ", "syntax"),
    (b"{", "syntax"),
    (b'{"reason":"a","reason":"b"}', "duplicate_key"),
    (b'{"reason":NaN}', "syntax"),
    (b'{"reason":-Infinity}', "syntax"),
    (b'{"reason":9007199254740993}', "integer_out_of_range"),
    (b'{"reason":1e400}', "number_overflow"),
    (b'{"reason":0.1000000000000000055511151231257827}', "number_precision"),
    (b'{"reason":"\\ud800"}', "lone_surrogate"),
    (b'{"reason":"\\u0000"}', "nul"),
    (b'{"reason":"\xff"}', "invalid_utf8"),
    (b'\xef\xbb\xbf{"reason":"a"}', "bom"),
    (b'{"reason":"a"} x', "trailing_data"),
    (b'{"reason":"\n"}', "raw_control_char"),
    (nested(100), "too_deep"),
]


@pytest.mark.parametrize(("raw", "code"), CASES)
def test_what_is_not_strict_json_is_refused(
    world: World, raw: bytes, code: str
) -> None:  # field reports H4, H8
    for path in WRITES:
        refused(world.agent.post(path.format(id=SOME), raw), 400, code)
    refused(world.ada.post(f"/proposals/{SOME}/decisions", raw), 400, code)


def test_where_it_is_wrong_is_told_and_the_value_is_not(world: World) -> None:
    raw = b'{"workflow":"toy-pay","source":{"system":"test"},"input":{"order":"1","order":"secret-canary"}}'
    answer = world.agent.post("/runs", raw)
    assert refused(answer, 400, "duplicate_key") == {"path": "/input/order"}
    assert b"canary" not in answer.content
    answer = world.agent.post("/runs", run_body(callback="secret canary"))
    assert refused(answer, 422, "invalid")["errors"][0]["path"] == "callback"
    assert b"canary" not in answer.content


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "text/json", ""],
)
def test_only_json_is_taken(world: World, content_type: str) -> None:
    answer = world.agent.post("/runs", b"{}", headers={"Content-Type": content_type})
    refused(answer, 415, "unsupported_media_type")


def test_a_form_is_not_taken_for_a_decision(world: World) -> None:
    proposal = world.proposed()
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    body = b'--x\r\nContent-Disposition: form-data; name="decision"\r\n\r\napprove\r\n--x--\r\n'
    answer = world.ada.post(f"/proposals/{proposal['id']}/decisions", body, headers=headers)
    refused(answer, 415, "unsupported_media_type")


def test_json_in_utf_8_may_say_so(world: World) -> None:
    headers = {"Content-Type": f"{JSON}; charset=UTF-8"}
    as_json(world.agent.post("/runs", run_body(), headers=headers), 201)


def test_a_compressed_body_is_refused(world: World) -> None:
    answer = world.agent.post("/runs", gzip.compress(b"{}"), headers={"Content-Encoding": "gzip"})
    refused(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(("path", "limit"), [("/runs", 2_097_152), (f"/runs/{SOME}/cancel", 262_144)])
def test_what_is_too_large_is_refused_before_it_is_read(  # security list S39
    world: World, path: str, limit: int
) -> None:
    answer = world.agent.post(path, b'{"reason":"' + b"x" * limit + b'"}')
    assert refused(answer, 413, "too_large") == {"limit": limit}


def test_ten_megabytes_are_too_large_for_everything(world: World) -> None:
    refused(world.agent.post("/runs", b" " * 10_000_000), 413, "too_large")


def test_a_large_form_is_too_large_for_a_decision_too(world: World) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = world.ada.post(f"/proposals/{SOME}/decisions", b"a=" + b"x" * 5_000_000, headers=headers)
    refused(answer, 413, "too_large")


@pytest.mark.parametrize("raw", [b"7", b'"text"', b"null", b"[]"])
@pytest.mark.parametrize("path", ["/runs/{id}/cancel", "/proposals/{id}/withdraw"])
def test_a_body_is_an_object(world: World, path: str, raw: bytes) -> None:
    refused(world.agent.post(path.format(id=SOME), raw), 400, "top_level_not_object")


@pytest.mark.parametrize("raw", [b"7", b'"text"', b"null"])
def test_a_run_is_an_object_or_a_list(world: World, raw: bytes) -> None:
    refused(world.agent.post("/runs", raw), 422, "invalid")
    assert not Run.objects.exists()


def test_nothing_is_turned_into_another_type(world: World) -> None:
    callers: list[tuple[Caller, str, dict[str, object]]] = [
        (world.agent, "/runs", run_body(source={"system": 1, "event_id": 2})),
        (world.agent, f"/runs/{SOME}/cancel", {"reason": 5}),
        (world.ada, f"/proposals/{SOME}/decisions", {"digest": 1, "view_digest": 2, "decision": 3}),
    ]
    for caller, path, body in callers:
        refused(caller.post(path, body), 422, "invalid")
