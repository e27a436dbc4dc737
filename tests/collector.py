"""A collector of OpenTelemetry on loopback that stores the spans it receives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Exported:
    """A received span."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    #: What went wrong; empty: nothing.
    error: str


@dataclass
class Collector:
    """The spans received so far."""

    endpoint: str = ""
    spans: list[Exported] = field(default_factory=list)

    def of(self, trace: str) -> dict[str, Exported]:
        """Return {name: span} of one trace."""
        return {span.name: span for span in list(self.spans) if span.trace == trace}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve while the block runs, and yield the Collector."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") is None:
                collector.spans.extend(_spans(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.endpoint = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _spans(body: bytes) -> Iterator[Exported]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        named = {one.key: one.value.string_value for one in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                attributes = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
                ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                yield Exported(named["service.name"], span.name, *ids, attributes, span.status.message)
