"""Spans: what is measured, what is handed on, and what is no reason to wait or to fail."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import pytest

from saltern.kit.config.master import ConfigError
from saltern.kit.process.tracing import Tracing, checked, parent_of
from tests.collector import collecting
from tests.ports import free_port

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    "value",
    [
        *("", None, 1, b"x", {}, PARENT.upper(), PARENT + "\n", f" {PARENT}", PARENT[:-1], f"{PARENT}-00"),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN[:-1]}g-01",
    ],
)
def test_what_is_no_traceparent(value: Any) -> None:
    assert parent_of(value) == ""


def test_a_traceparent() -> None:
    assert parent_of(PARENT) == PARENT


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"enable": True}, "there is no 'enable'; the nearest is 'enabled'"),
        ({"enabled": "yes"}, "enabled cannot be 'yes'"),
        ({"exporter": "otlp-grpc"}, "exporter is otlp-http or console here, not 'otlp-grpc'"),
        ({"sampler": "some"}, "sampler is parent_based or .*, not 'some'"),
        ({"sampler_arg": 1.5}, "sampler_arg is a share between 0 and 1, not 1.5"),
        ({"headers": "a=b"}, "headers cannot be 'a=b'"),
    ],
)
def test_options_that_cannot_be_used(option: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=f"tracing: {why}"):
        Tracing(option, "x")


def test_salts_own_defaults_are_taken() -> None:
    salts = {"enabled": False, "exporter": "otlp-http", "endpoint": "", "service_name": "", "sampler": "parent_based"}
    salts |= {"sampler_arg": 1.0, "resource_attributes": {}, "insecure": True, "headers": {}}
    assert checked(salts) == salts


@pytest.mark.parametrize("parent", ["", PARENT])
def test_without_the_option_others_traces_are_handed_on(parent: str) -> None:
    tracing = Tracing({}, "x")
    with tracing.of_peer("one", {"traceparent": parent}, "SERVER") as span:
        assert span.traceparent == parent
        assert span.marked({"a": 1}) == ({"a": 1, "traceparent": parent} if parent else {"a": 1})
    tracing.close()


def test_nothing_is_loaded_without_the_option() -> None:
    text = (
        "import sys; from saltern.kit.process.tracing import Tracing\n"
        "with Tracing({}, 'x').span('a'): pass\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def test_spans_of_two_processes_are_one_trace() -> None:
    with collecting() as collector:
        tracing = Tracing(
            {"enabled": True, "endpoint": collector.endpoint, "resource_attributes": {"site": "a"}}, "one"
        )
        with suppress(ValueError), tracing.span("outer", PARENT, "CLIENT", fun="test.ping") as outer:
            pid = os.fork()
            if not pid:
                with tracing.of_peer("inner", outer.marked({}), "SERVER") as inner:
                    inner.note(number=7)
                    inner.fail("no luck")
                tracing.close()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            raise ValueError("oops")
        tracing.close()
        spans = collector.of(TRACE)
        assert set(spans) == {"outer", "inner"}
        assert (spans["outer"].parent, spans["inner"].parent) == (SPAN, spans["outer"].id)
        assert (spans["outer"].service, spans["outer"].attributes) == ("one", {"fun": "test.ping"})
        assert (spans["inner"].attributes, spans["inner"].error, spans["outer"].error) == (
            {"number": 7},
            "no luck",
            "oops",
        )


def test_what_belongs_to_no_trace_is_not_measured() -> None:
    with collecting() as collector:
        tracing = Tracing({"enabled": True, "endpoint": collector.endpoint}, "one")
        with tracing.of_peer("inner", {"traceparent": "none"}, "SERVER") as span:
            assert span.traceparent == ""
        tracing.close()
        assert collector.spans == []


def test_a_sampler_may_leave_everything_out() -> None:
    with collecting() as collector:
        tracing = Tracing({"enabled": True, "endpoint": collector.endpoint, "sampler": "always_off"}, "one")
        with tracing.span("outer") as span:
            # The last bit says whether it is measured.
            assert not int(span.traceparent[-2:], 16) & 1
        tracing.close()
        assert collector.spans == []


def test_a_collector_that_is_away_holds_nothing_up() -> None:
    tracing = Tracing({"enabled": True, "endpoint": f"http://127.0.0.1:{free_port()}/v1/traces"}, "one")
    begun = time.monotonic()
    with tracing.span("outer"):
        pass
    assert time.monotonic() - begun < 5
    tracing.close()
    # Not to be waited for for long by a command that ends.
    assert time.monotonic() - begun < 15
