"""Bodies of requests and answers: forms, YAML that would not end, and what a client accepts."""

from __future__ import annotations

from typing import Any

import pytest

from saltern.api.bodies import JSON, YAML, BodyFault, accepted, lowstate_of, read_body, written

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("kind", "body", "value"),
    [
        (FORM, b"client=local&tgt=*&fun=test.ping", {"client": "local", "tgt": "*", "fun": "test.ping"}),
        (FORM, b"arg=one&arg=2", {"arg": ["one", 2]}),
        (FORM, b"arg=[1, 2]", {"arg": [[1, 2]]}),
        (FORM, b"arg=one%3D1", {"arg": ["one=1"]}),
        (FORM, b"arg=2026-01-01", {"arg": ["2026-01-01"]}),
        (FORM, b"kwarg={a: 1}", {"kwarg": {"a": 1}}),
        ("", b"a=b", {"a": "b"}),
        ("application/json; charset=utf-8", b'[{"a": 1}]', [{"a": 1}]),
        ("text/plain", b'{"a": 1}', {"a": 1}),
        ("text/plain", b"hello", "hello"),
        ("text/yaml", b"- a: 1", [{"a": 1}]),
        ("application/x-yaml", b"a: [b]", {"a": ["b"]}),
        ("application/json", b"", None),
    ],
)
def test_a_body_is_read(kind: str, body: bytes, value: object) -> None:
    assert read_body(kind, body) == value


_BOMB = b"a: &a [x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (n + 1, n + 1, n, n) for n in range(97, 110))


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("image/png", b"x", 406),
        ("application/json", b"{", 400),
        ("application/json", b"[" * 200_000, 400),
        ("application/x-yaml", _BOMB, 400),
        ("application/x-yaml", b"[" * 5000 + b"]" * 5000, 400),
        ("application/x-yaml", b"!!python/object/apply:os.system [id]", 400),
        ("application/x-yaml", b"[" + b"1," * 250_000 + b"]", 400),
        ("application/x-yaml", b"a: b: c", 400),
        ("text/plain", b"\xff\xfe", 400),
        (FORM, b"&".join(b"a=1" for _ in range(2000)), 400),
    ],
)
def test_a_body_that_cannot_be_read(kind: str, body: bytes, status: int) -> None:
    with pytest.raises(BodyFault) as caught:
        read_body(kind, body)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/json", JSON),
        ("application/x-yaml", YAML),
        ("application/json;q=0.5, application/x-yaml", YAML),
        ("application/*", JSON),
        ("text/html", None),
        ("text/html, */*;q=0.1", JSON),
        ("application/json;q=0", None),
        ("application/json;q=x", None),
    ],
)
def test_the_accepted_type(accept: str, kind: str | None) -> None:
    assert accepted(accept) == kind


def test_an_answer_is_written() -> None:
    value: dict[str, Any] = {"return": [{"a": (1, None), "b": {3}}]}
    assert written({"a": 1}, JSON) == b'{"a": 1}'
    assert written({"a": [1]}, YAML) == b"a:\n- 1\n"
    assert written(value, YAML).startswith(b"return:")


def test_chunks() -> None:
    assert lowstate_of({"a": 1}) == lowstate_of([{"a": 1}]) == [{"a": 1}]
    for wrong in (None, 3, "x", [3], [[{}]]):
        with pytest.raises(BodyFault):
            lowstate_of(wrong)
