"""`python -m tools.record_board`: a person lands ten demo builders on the board without typing one id.

The board runs in a pane of a tmux server of its own, is driven by `send-keys`, and what `capture-pane` shows
is kept whenever it has changed: as an asciicast and as an SVG, docs/ten-builders.cast and .svg.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from rich.color import ColorType
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tools.demo import Scratch

TOP = Path(__file__).parents[1]
COLUMNS, ROWS = 100, 30
CHARACTER, LINE = 8.4, 17
LOOK_SECONDS = 0.1
WAIT_SECONDS = 180.0
TASKS = (
    ("Speed up the search", "search.txt"),
    ("Fix the login redirect", "login.txt"),
    ("Export as CSV", "export.txt"),
    ("Remember the theme", "theme.txt"),
    ("Cache the index", "cache.txt"),
    ("Describe the API", "api.txt"),
    ("Retry failed uploads", "retry.txt"),
    ("Say which field is wrong", "fields.txt"),
    ("Break the build", "bad.txt"),
)
SETTINGS = '[spawn]\nruntime = "demo"\n\n[check]\ncommand = "sleep 1; ! ls bad* 2>/dev/null"\n'


@dataclass
class Recording:
    scratch: Scratch
    frames: list[tuple[float, str]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def tmux(self, *words: str) -> str:
        argv = ("tmux", "-L", "recording", "-f", "/dev/null", *words)
        done = subprocess.run(
            argv, cwd=self.scratch.repository, env=self.scratch.environment(), capture_output=True, text=True
        )
        return done.stdout

    def look(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            screen = self.tmux("capture-pane", "-e", "-p", "-t", "board")
            if not self.frames or screen != self.frames[-1][1]:
                self.frames.append((time.monotonic() - self.began, screen))
            if time.monotonic() >= deadline:
                return
            time.sleep(LOOK_SECONDS)

    def until(self, text: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while text not in Text.from_ansi(self.frames[-1][1] if self.frames else "").plain:
            if time.monotonic() > deadline:
                sys.exit(f"The board never showed {text!r}; it shows\n{self.frames[-1][1]}")
            self.look(LOOK_SECONDS)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tmux("send-keys", "-t", "board", key)
            self.look(0.7)


def play(recording: Recording) -> None:
    """One that asks is answered; all others land together, but for one that goes back to its builder."""
    recording.until("Which colour?")
    recording.look(2.0)
    recording.press("n", "a")
    recording.until("keys go to it")
    recording.look(1.0)
    recording.press("1")
    recording.until("Idle (10)")
    recording.press("g", "*", "l")
    recording.until("Enter: land 10 builders")
    recording.look(1.5)
    recording.press("Enter")
    recording.until("Y: agree to this")
    recording.look(1.0)
    recording.press("Y")
    recording.until("The landing is done: 9 landed, 1 came back")
    recording.look(2.0)
    recording.press("p")
    recording.until("Enter: remove these")
    recording.look(1.5)
    recording.press("Enter")
    recording.until("1 builder")
    recording.look(2.0)


def asciicast(frames: Sequence[tuple[float, str]]) -> Iterator[str]:
    title = "af board: ten builders land without one id typed"
    yield json.dumps({"version": 2, "width": COLUMNS, "height": ROWS, "title": title})
    for at, screen in frames:
        painted = "\x1b[H\x1b[2J" + screen.rstrip("\n").replace("\n", "\r\n")
        yield json.dumps([round(at, 2), "o", painted], ensure_ascii=False)


def svg(frames: Sequence[tuple[float, str]]) -> Iterator[str]:
    width, height, whole = COLUMNS * CHARACTER + 20, ROWS * LINE + 20, frames[-1][0] + 3
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">'
    yield "<title>Ten builders land on the board without one id typed</title>"
    yield "<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre}"
    yield ".f{visibility:hidden}"
    ends = [*(at for at, _ in frames[1:]), whole]
    for number, ((at, _), end) in enumerate(zip(frames, ends, strict=True)):
        shown, hidden = at / whole * 100, end / whole * 100
        yield f"@keyframes k{number}{{0%,{shown:.2f}%{{visibility:hidden}}{shown:.2f}%{{visibility:visible}}"
        yield f"{hidden:.2f}%,100%{{visibility:hidden}}}}"
        yield f"#f{number}{{animation:k{number} {whole:.1f}s steps(1) infinite}}"
    yield f'</style><rect width="100%" height="100%" rx="8" fill="{MONOKAI.background_color.hex}"/>'
    screens = [screen.split("\n")[:ROWS] for _, screen in frames]
    lines = {
        line: f"l{place}" for place, line in enumerate(dict.fromkeys(line for one in screens for line in one))
    }
    yield "<defs>"
    console = Console(width=COLUMNS, color_system="truecolor", force_terminal=True)
    for line, name in lines.items():
        yield f'<g id="{name}">{"".join(_line(console, Text.from_ansi(line, no_wrap=True)))}</g>'
    yield "</defs>"
    for number, screen in enumerate(screens):
        rows = (
            f'<use href="#{lines[line]}" y="{10 + row * LINE}"/>' for row, line in enumerate(screen) if line
        )
        yield f'<g id="f{number}" class="f">{"".join(rows)}</g>'
    yield "</svg>"


def _line(console: Console, text: Text) -> Iterator[str]:
    column = 0
    for segment in text.render(console):
        cells = segment.cell_length
        if segment.text.strip() or (segment.style and segment.style.reverse):
            yield from _span(segment, 10 + column * CHARACTER, LINE - 4, cells * CHARACTER)
        column += cells


def _span(segment: Segment, x: float, y: float, width: float) -> Iterator[str]:
    style = segment.style or Style()
    front = _colour(style) or MONOKAI.foreground_color.hex
    if style.reverse:
        yield f'<rect x="{x:.1f}" y="{y - 13:.1f}" width="{width:.1f}" height="{LINE}" fill="{front}"/>'
        front = MONOKAI.background_color.hex
    more = (' font-weight="bold"' if style.bold else "") + (' opacity="0.6"' if style.dim else "")
    words = segment.text.rstrip("\n")
    if words.strip():
        place = f'x="{x:.1f}" y="{y:.1f}" textLength="{width:.1f}"'
        yield f'<text {place} fill="{front}"{more}>{escape(words)}</text>'


def _colour(style: Style) -> str | None:
    if style.color is None or style.color.type is ColorType.DEFAULT:
        return None
    return style.color.get_truecolor(MONOKAI).hex


def main() -> None:
    scratch = Scratch(Path(tempfile.mkdtemp(prefix="af-demo-", dir="/tmp")))
    try:
        scratch.make()
        (scratch.repository / "agent-farm.toml").write_text(SETTINGS)
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Set up the checks")):
            scratch.ask("git", *words)
        scratch.ask("af", "spawn", "Paint the header [[ask:Which colour? Red?]] [[write:header.txt]]")
        for task, file in TASKS:
            scratch.ask("af", "spawn", f"{task} [[write:{file}]]")
        recording = Recording(scratch)
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        recording.tmux("new-session", "-d", "-s", "board", *size, "env", "-u", "TMUX", "af", "board")
        play(recording)
    finally:
        scratch.remove()
    (TOP / "docs/ten-builders.cast").write_text("\n".join(asciicast(recording.frames)) + "\n")
    (TOP / "docs/ten-builders.svg").write_text("\n".join(svg(recording.frames)) + "\n")


if __name__ == "__main__":
    main()
