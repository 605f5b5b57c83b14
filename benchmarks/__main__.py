"""`python -m benchmarks [NAME…]`: every benchmark, or the ones named."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

_NOT_BENCHMARKS = ("__init__", "__main__", "chart", "stage")


def main() -> None:
    here = Path(__file__).parent
    known = sorted(file.stem for file in here.glob("*.py") if file.stem not in _NOT_BENCHMARKS)
    for name in sys.argv[1:] or known:
        if name not in known:
            sys.exit(f"No benchmark {name}; there are: {', '.join(known)}")
        print(f"\n{name}")
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
