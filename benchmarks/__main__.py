"""`python -m benchmarks [NAME…]`: those named, `all`, or those of what commands cost."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.record import RECORDED, RESULTS, machine, record
from tools.docs import write_documents

HEADLINES = ("ratios", "builders", "many", "peers", "board", "dashboard", "server", "ask")
BENCHMARKS = (*HEADLINES, "builds", "contest", "elsewhere", "fleet", "landing", "review", "runtimes")


def main() -> None:
    asked = tuple(sys.argv[1:])
    names = BENCHMARKS if asked == ("all",) else asked or HEADLINES
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"No benchmark {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    into = RECORDED if os.environ.get("BENCH_RECORD") else RESULTS
    record(into, "machine", machine())
    failed = [name for name in names if not run(name, into)]
    print(f"\nWritten to {into}")
    if into == RECORDED:
        write_documents()
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}")


def run(name: str, into: Path) -> bool:
    """One that fails keeps nothing from the others, and what was recorded of it stays."""
    print(f"\n{name}", flush=True)
    found = {}
    try:
        for what, value in import_module(f"benchmarks.{name}").main():
            print(f"  {what.ljust(64)}  {value}", flush=True)
            found[what] = value
    except (Exception, SystemExit) as error:
        print(f"  failed: {type(error).__name__}: {error}")
        return False
    record(into, name, found)
    return True


if __name__ == "__main__":
    main()
