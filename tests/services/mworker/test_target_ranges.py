"""A range server on loopback: what is asked of it, and what its answers and its silence come to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import unquote

import pytest

from saltern.mworker.targets import expand
from statecore.model.errors import TargetError
from tests.ports import free_port


class RangeServer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path, _, expression = self.path.partition("?")
        expression = unquote(expression)
        assert path == "/range/list"
        status, wrong, body = {
            "%web:CLUSTER": (200, "", b"web1\nweb2\nweb1\n"),
            "web1..2 & {a,b}": (200, "", b"web2"),
            "%empty": (200, "", b""),
            "%%": (200, "NOCLUSTERDEF: %", b""),
        }.get(expression, (500, "", b"oops"))
        self.send_response(status)
        if wrong:
            self.send_header("RangeException", wrong)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), RangeServer) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"127.0.0.1:{served.server_address[1]}"
        served.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("expression", "names"),
    [("%web:CLUSTER", ["web1", "web2"]), ("web1..2 & {a,b}", ["web2"]), ("%empty", [])],
)
def test_names(server: str, expression: str, names: list[str]) -> None:
    assert expand(server, expression) == names


@pytest.mark.parametrize(
    ("expression", "why"), [("%%", "refuses '%%': NOCLUSTERDEF: %"), ("%x", "refuses '%x': HTTP status 500")]
)
def test_refusals(server: str, expression: str, why: str) -> None:
    with pytest.raises(TargetError) as error:
        expand(server, expression)
    assert str(error.value) == f"the range server {server} {why}"


def test_a_server_that_is_not_there() -> None:
    port = free_port()
    with pytest.raises(TargetError, match=rf"127\.0\.0\.1:{port} .* does not answer"):
        expand(f"127.0.0.1:{port}", "%x")


@pytest.mark.parametrize("server", ["host:port:more", "127.0.0.1:port"])
def test_an_address_that_is_none(server: str) -> None:
    with pytest.raises(TargetError, match="range_server"):
        expand(server, "%x")


@pytest.mark.redis
def test_a_published_range_is_a_list_for_minions(new_worker: Callable[..., Any], server: str) -> None:
    worker = new_worker(range_server=server, nodegroups={"front": "R@%web:CLUSTER"})
    worker.accept("web1", "web3")
    job = worker.control("publish", tgt="%web:CLUSTER", tgt_type="range", fun="test.ping", user="root")
    assert (job["minions"], job["missing"]) == (["web1"], ["web2"])
    load = worker.store.jobs.load(job["jid"])
    assert (load["tgt"], load["tgt_type"]) == (["web1", "web2"], "list")
    for tgt, kind in (("R@%web:CLUSTER or web3", "compound"), ("front", "nodegroup")):
        load = worker.store.jobs.load(
            worker.control("publish", tgt=tgt, tgt_type=kind, fun="test.ping", user="root")["jid"]
        )
        assert "L@web1,web2" in load["tgt"]
        assert "R@" not in load["tgt"]
    assert worker.control("targets", tgt="%x", tgt_type="range")[0] == "TargetError"


@pytest.mark.redis
def test_without_a_server_it_says_which_option(new_worker: Callable[..., Any]) -> None:
    name, why = new_worker().control("publish", tgt="%web", tgt_type="range", fun="test.ping", user="root")
    assert (name, "option range_server" in why) == ("TargetError", True)
