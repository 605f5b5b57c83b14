"""OpenTelemetry, if it is configured or the caller traces already; otherwise it is never imported."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
TRACEPARENT = re.compile(r"(?P<version>[0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?P<more>-.*)?")


@dataclass(frozen=True, slots=True)
class Trace:
    trace_id: str
    traceparent: str


_GIVEN: ContextVar[Trace | None] = ContextVar("the caller's trace", default=None)


def is_configured(environ: Mapping[str, str]) -> bool:
    if (
        environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        or environ.get("OTEL_TRACES_EXPORTER") == "none"
    ):
        return False
    return any(environ.get(name) for name in ENDPOINTS)


def start_export(environ: Mapping[str, str], service: str) -> Callable[[], None] | None:
    """Send spans by OTLP over HTTP, if configured; the returned function flushes and ends that."""
    if not is_configured(environ):
        return None
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = environ.get("OTEL_SERVICE_NAME", service)
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


@contextmanager
def span(name: str, **attributes: str | int | bool) -> Iterator[None]:
    """A child of the current span; does nothing while nobody traces."""
    trace = _tracing()
    if trace is None:
        yield
        return
    with trace.get_tracer("agent_farm").start_as_current_span(name, attributes=attributes):
        yield


def note(attributes: Mapping[str, str | int | float | None]) -> None:
    """Set attributes on the current span, without those that are None."""
    if trace := _tracing():
        known = {name: value for name, value in attributes.items() if value is not None}
        trace.get_current_span().set_attributes(known)


def mark_failed(reason: str) -> None:
    if trace := _tracing():
        trace.get_current_span().set_status(trace.StatusCode.ERROR, reason)


def parse_traceparent(text: str | None) -> Trace | None:
    """Parse a W3C traceparent; None if it is absent or malformed."""
    found = TRACEPARENT.fullmatch(text or "")
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["more"]):
        return None
    trace_id, span_id = found[2], found[3]
    return Trace(trace_id, found[0]) if trace_id.strip("0") and span_id.strip("0") else None


def current_trace() -> Trace | None:
    """The active trace in W3C form, else the caller's as it was given, or None."""
    trace = _tracing()
    context = trace.get_current_span().get_span_context() if trace else None
    if context is None or not context.is_valid:
        return _GIVEN.get()
    trace_id = f"{context.trace_id:032x}"
    return Trace(trace_id, f"00-{trace_id}-{context.span_id:016x}-{int(context.trace_flags):02x}")


def trace_id() -> str | None:
    trace = current_trace()
    return trace.trace_id if trace else None


@contextmanager
def continued(traceparent: str | None) -> Iterator[None]:
    """Spans inside belong to the caller's trace, passed on without OpenTelemetry; a malformed one is none."""
    given = parse_traceparent(traceparent)
    if given is None:
        yield
        return
    token = _GIVEN.set(given)
    try:
        with _attached(given):
            yield
    finally:
        _GIVEN.reset(token)


@contextmanager
def _attached(given: Trace) -> Iterator[None]:
    if _tracing() is None:
        yield
        return
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    found = TraceContextTextMapPropagator().extract({"traceparent": given.traceparent})
    token = context.attach(found)
    try:
        yield
    finally:
        context.detach(token)


def _tracing() -> Any:
    """The library, if anything has loaded it."""
    return sys.modules.get("opentelemetry.trace")
