"""Put xterm.js beside the dashboard's page: `python tools/vendor_xterm.py`, and the build hook at packaging.

Versions and hashes are those of tools/xterm/package-lock.json. Without npm nothing is put there, and the
dashboard shows plain screens instead of terminals.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
LOCKED = HOME / "tools/xterm"
TARGET = HOME / "agent_farm/server/page/vendor"
FILES = {
    "@xterm/xterm/lib/xterm.mjs": "xterm.mjs",
    "@xterm/xterm/css/xterm.css": "xterm.css",
    "@xterm/xterm/LICENSE": "xterm.LICENSE",
    "@xterm/addon-fit/lib/addon-fit.mjs": "addon-fit.mjs",
    "@xterm/addon-fit/LICENSE": "addon-fit.LICENSE",
}
_SECONDS = 180


def is_vendored() -> bool:
    return all((TARGET / name).is_file() for name in FILES.values())


def vendor_xterm() -> str | None:
    """None when it is there, else why not."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    with tempfile.TemporaryDirectory(prefix="af-xterm-") as scratch:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(LOCKED / name, scratch)
        argv = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        try:
            done = subprocess.run(
                argv, cwd=scratch, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"npm ci took longer than {_SECONDS} s"
        if done.returncode:
            return f"npm ci failed: {done.stderr.strip()}"
        _copy(Path(scratch, "node_modules"))
    return None


def _copy(modules: Path) -> None:
    TARGET.mkdir(exist_ok=True)
    for source, name in FILES.items():
        text = (modules / source).read_text(encoding="utf-8")
        # The maps stay behind; a browser would ask for them and find nothing.
        text = re.sub(r"\n//# sourceMappingURL=\S+\s*$", "\n", text)
        (TARGET / name).write_text(text, encoding="utf-8")


def main() -> int:
    problem = vendor_xterm()
    if problem:
        print(f"xterm.js was not put in place: {problem}", file=sys.stderr)
        return 1
    print(f"{len(FILES)} files in {TARGET.relative_to(HOME)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
