"""`python -m benchmarks [NAME…]`: every benchmark, or the ones named."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

_NOT_BENCHMARKS = ("__init__", "__main__", "chart", "contest_functions", "stage", "stub_runtime")
BENCHMARKS = sorted(
    file.stem for file in Path(__file__).parent.glob("*.py") if file.stem not in _NOT_BENCHMARKS
)


def main() -> None:
    for name in sys.argv[1:] or BENCHMARKS:
        if name not in BENCHMARKS:
            sys.exit(f"No benchmark {name}; there are: {', '.join(BENCHMARKS)}")
        print(f"\n{name}")
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
