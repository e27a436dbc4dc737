"""Traces by OpenTelemetry (option ``tracing``, with Salt's keys): one job is one trace, from the command to the return.

The trace travels as a W3C ``traceparent``: a field of publish requests, publications and returns, as in stock Salt 3008.
Without the option nothing is imported and nothing is measured; a ``traceparent`` from a peer is passed on unchanged.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypedDict, cast

from saltern.kit.config.reading import ConfigError
from statecore.model.nearest import close_matches

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import Sampler

_LOG = logging.getLogger("saltern.tracing")

#: Name of the field in a load, and of a command's environment variable.
FIELD = "traceparent"
VARIABLE = "TRACEPARENT"

#: Hexadecimal version, trace id, span id and flags.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

#: Keys of the option -> its kind. Salt's; ``insecure`` is for otlp-grpc.
_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "enabled": bool,
    "exporter": str,
    "endpoint": str,
    "service_name": str,
    "sampler": str,
    "sampler_arg": (int, float),
    "resource_attributes": dict,
    "headers": dict,
    "insecure": bool,
}


class TracingOption(TypedDict, total=False):
    """The checked value of the option ``tracing``: Salt's settings for OpenTelemetry, such as exporter, endpoint and
    sampler. All are optional.
    """

    enabled: bool
    exporter: str
    endpoint: str
    service_name: str
    sampler: str
    #: Share of the traces that are measured, 0 to 1.
    sampler_arg: float
    resource_attributes: dict[str, str]
    headers: dict[str, str]
    insecure: bool


EXPORTERS = ("otlp-http", "console")

SAMPLERS = ("parent_based", "always_on", "always_off", "trace_id_ratio")

#: Seconds to wait for the collector; a process that ends waits no longer.
_PATIENCE = 2.0


def parent_of(value: object) -> str:
    """Return ``value``, which a peer sent as ``traceparent``, if it is a well-formed one; else ""."""
    return value if isinstance(value, str) and _TRACEPARENT.fullmatch(value) else ""


#: Value of an attribute of a span.
Attribute = str | bool | int | float


class Span:
    """One measured piece of work in a trace (an OpenTelemetry span). With tracing off it is a placeholder that
    measures nothing.
    """

    def __init__(self, traceparent: str) -> None:
        #: ``traceparent`` for messages that continue the trace; empty if nothing is measured.
        self.traceparent = traceparent
        self.notes: dict[str, Attribute] = {}
        self.why = ""

    def note(self, **attributes: Attribute) -> None:
        """Add attributes to the trace's span: texts, numbers, booleans."""
        self.notes |= attributes

    def marked(self, load: Mapping[str, object]) -> dict[str, object]:
        """Return a copy of the load with this span's ``traceparent`` as a field; the receiver of the load then
        continues the trace.

        If nothing is measured, the copy is unchanged.
        """
        return {**load, FIELD: self.traceparent} if self.traceparent else dict(load)

    def fail(self, why: str) -> None:
        """Mark the trace's span as failed, for the reason ``why``."""
        self.why = why


class Tracing:
    """The OpenTelemetry spans of one process. After a fork the child process exports its own spans."""

    def __init__(self, option: Mapping[str, object], service: str) -> None:
        """Prepare tracing by the value of the option ``tracing``; ``service`` is the service name in the spans.

        Raises ConfigError.
        """
        self._option = checked(option)
        self._service = service
        self._provider: TracerProvider | None = None
        self._process = 0
        if self.enabled:
            # Loaded now and before a fork, so that the first job need not wait.
            _provider(self._option, service).shutdown()

    @property
    def enabled(self) -> bool:
        """Return whether the option ``tracing`` is on, so that spans are measured."""
        return bool(self._option.get("enabled"))

    @contextlib.contextmanager
    def span(self, name: str, parent: str = "", kind: str = "INTERNAL", **attributes: Attribute) -> Iterator[Span]:
        """Return a context manager that records its ``with`` block as a span of a trace, if tracing is enabled. It
        yields the Span.

        ``parent`` is a ``traceparent`` ("" starts a new trace); ``kind`` is INTERNAL, CLIENT, SERVER, PRODUCER or
        CONSUMER.
        """
        if not self.enabled:
            yield Span(parent)
            return
        # Imported only if tracing is on: they take 15 MB and half a second.
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        propagator = TraceContextTextMapPropagator()
        measured = (
            self._own()
            .get_tracer("saltern")
            .start_span(
                name,
                context=propagator.extract({FIELD: parent}) if parent else None,
                kind=trace.SpanKind[kind],
                attributes=attributes,
            )
        )
        carrier: dict[str, str] = {}
        propagator.inject(carrier, context=trace.set_span_in_context(measured))
        span = Span(carrier[FIELD])
        try:
            yield span
        except BaseException as error:
            span.fail(str(error) or type(error).__name__)
            raise
        finally:
            measured.set_attributes(span.notes)
            if span.why:
                measured.set_status(trace.Status(trace.StatusCode.ERROR, span.why))
            measured.end()

    def of_peer(
        self, name: str, load: Mapping[str, object], kind: str, **attributes: Attribute
    ) -> contextlib.AbstractContextManager[Span]:
        """Return a context manager that measures its block as a span of the trace in the ``traceparent`` of ``load``.

        If the load has no trace, the block gets a Span that measures nothing.
        """
        parent = parent_of(load.get(FIELD))
        return self.span(name, parent, kind, **attributes) if parent else contextlib.nullcontext(Span(""))

    def close(self) -> None:
        """Export the spans that were not sent to the collector yet."""
        if self._provider is not None and self._process == os.getpid():
            self._provider.shutdown()
            self._provider = None

    def _own(self) -> TracerProvider:
        """Return the OpenTelemetry provider of this process.

        It is created at the first use, and again after a fork, because threads do not survive a fork.
        """
        if self._provider is None or self._process != os.getpid():
            self._provider, self._process = _provider(self._option, self._service), os.getpid()
        return self._provider


def checked(option: Mapping[str, object]) -> TracingOption:
    """Return the value of the option ``tracing`` after checks. Raises ConfigError whose message names the wrong key."""
    for key, value in option.items():
        if key not in _KEYS:
            near = close_matches(key, _KEYS, n=1)
            raise ConfigError(f"tracing: there is no '{key}'; " + (f"the nearest is '{near[0]}'" if near else ""))
        if not isinstance(value, _KEYS[key]):
            raise ConfigError(f"tracing: {key} cannot be {value!r}")
    for key, known in (("exporter", EXPORTERS), ("sampler", SAMPLERS)):
        if option.get(key) and option[key] not in known:
            raise ConfigError(f"tracing: {key} is {' or '.join(known)} here, not '{option[key]}'")
    found = cast("TracingOption", option)
    if not 0 <= found.get("sampler_arg", 1.0) <= 1:
        raise ConfigError(f"tracing: sampler_arg is a share between 0 and 1, not {found['sampler_arg']}")
    return found


def _provider(option: TracingOption, service: str) -> TracerProvider:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
    except ImportError as error:
        raise ConfigError(
            f"tracing: {error}; it needs opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"
        ) from error
    named: dict[str, Attribute] = {"service.name": option.get("service_name") or service}
    named |= option.get("resource_attributes") or {}
    provider = TracerProvider(resource=Resource.create(named), sampler=_sampler(option), shutdown_on_exit=False)
    exporter: SpanExporter
    if option.get("exporter") == "console":
        exporter = ConsoleSpanExporter()
    else:
        exporter = OTLPSpanExporter(
            endpoint=option.get("endpoint") or None, headers=option.get("headers") or None, timeout=_PATIENCE
        )
    # A thread of its own sends the spans, so that no job waits for the collector.
    provider.add_span_processor(BatchSpanProcessor(exporter, export_timeout_millis=_PATIENCE * 1000))
    return provider


def _sampler(option: TracingOption) -> Sampler:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, TraceIdRatioBased

    ratio = TraceIdRatioBased(option.get("sampler_arg", 1.0))
    samplers: Mapping[str, Sampler] = {
        "always_on": ALWAYS_ON,
        "always_off": ALWAYS_OFF,
        "trace_id_ratio": ratio,
        "parent_based": ParentBased(ratio),
    }
    return samplers[option.get("sampler") or "parent_based"]
