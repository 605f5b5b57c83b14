"""`bounded_copy.py BYTES PROGRAM…`: runs the program, and ends it if its output exceeds that size.

It is a separate program because git starts it instead of ssh: a fetch itself has no limit.
"""

from __future__ import annotations

import os
import subprocess
import sys

TOO_MUCH = "af: more came than may be fetched"
_AT_ONCE = 1 << 20


def main() -> int:
    left, argv = int(sys.argv[1]), sys.argv[2:]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout
        source = process.stdout.fileno()
        try:
            while chunk := os.read(source, _AT_ONCE):
                left -= len(chunk)
                if left < 0:
                    sys.stderr.write(f"{TOO_MUCH}\n")
                    process.kill()
                    return 1
                _write(chunk)
        except BrokenPipeError:  # git has what it wanted, or has died
            process.kill()
    return process.returncode


def _write(chunk: bytes) -> None:
    while chunk:
        chunk = chunk[os.write(1, chunk) :]


if __name__ == "__main__":
    sys.exit(main())
