from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_farm.sessions import telemetry
from tests.sessions.loop import in_loop
from tests.sessions.stage import make_stage

UNTRACED = """
import asyncio, sys
from pathlib import Path
from tests.sessions.stage import make_stage

async def main():
    stage = make_stage(Path(sys.argv[1]))
    result = await stage.spawner.trigger("x")
    assert result.success, result.error
    assert result.trace_id is None
    assert "TRACEPARENT" not in stage.script.calls[0].env

asyncio.run(main())
loaded = [name for name in sys.modules if name.startswith("opentelemetry")]
assert not loaded, loaded
"""


@pytest.fixture
def spans() -> Iterator[list[object]]:
    """Finished spans of a real SDK; the global provider can be set only once in a process."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    finished: list[object] = []

    class Keep(SpanExporter):
        def export(self, batch: object) -> SpanExportResult:
            finished.extend(batch)  # type: ignore[call-overload]
            return SpanExportResult.SUCCESS

    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    processor = SimpleSpanProcessor(Keep())
    provider.add_span_processor(processor)
    assert ReadableSpan
    yield finished
    processor.shutdown()
    finished.append(None)


@in_loop
async def test_a_session_inside_a_trace_gets_traceparent_and_records_the_trace(
    tmp_path: Path, spans: list[object]
) -> None:
    from opentelemetry import trace

    stage = make_stage(tmp_path)
    with trace.get_tracer("test").start_as_current_span("caller") as caller:
        result = await stage.spawner.trigger("x")
    wanted = f"{caller.get_span_context().trace_id:032x}"
    parent = stage.script.calls[0].env["TRACEPARENT"]
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", parent)
    assert parent.split("-")[1] == wanted
    assert result.trace_id == wanted
    assert stage.only_record()["trace_id"] == wanted
    by_name = {span.name: span for span in spans}  # type: ignore[attr-defined]
    assert by_name["butler.trigger"].parent.span_id == caller.get_span_context().span_id
    assert by_name["runtime.invoke"].parent.span_id == by_name["butler.trigger"].context.span_id
    assert parent.split("-")[2] == f"{by_name['runtime.invoke'].context.span_id:016x}"
    told = by_name["runtime.invoke"].attributes
    assert told["gen_ai.operation.name"] == "invoke_agent"
    assert told["gen_ai.agent.name"] == by_name["butler.trigger"].attributes["butler"]
    assert told["gen_ai.provider.name"]
    record = stage.only_record()
    assert told["gen_ai.usage.output_tokens"] == record["output_tokens"]


def test_without_a_trace_nothing_is_imported_and_no_variable_set(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNTRACED, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        timeout=60,
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("environ", "configured"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_export_is_configured_by_the_standard_variables(environ: dict[str, str], configured: bool) -> None:
    assert telemetry.is_configured(environ) is configured


@in_loop
async def test_a_given_traceparent_is_continued(spans: list[object]) -> None:
    given = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    with telemetry.continued(given), telemetry.span("inside"):
        trace = telemetry.current_trace()
    assert trace is not None
    assert trace.trace_id == "a" * 32
    with telemetry.continued("nonsense"):
        assert telemetry.current_trace() is None
