"""Types text into a running program, so that "sent" means submitted.

Leaves copy mode. Holds while a shell, a dialog or a draft would get the text, and until there is an input
line. Pastes once, from its own buffer, in brackets; waits until the text shows; presses Enter in a separate
call. Then an event about this very text, or the screen, has to confirm that it was submitted. Enter is
pressed again, at most twice, only while the text is seen waiting (once if no rule can tell); the text is
never pasted again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import file_lock
from agent_farm.errors import LockTaken
from agent_farm.tmux.deliverable import Delivery, require_deliverable
from agent_farm.tmux.foreground import why_not_the_runtime
from agent_farm.tmux.pane_input import INPUT_FACTS, NotAnswered, PaneGone, PaneInput, read_input
from agent_farm.tmux.screen import Reading, ScreenRules, plain, read_screen
from agent_farm.tmux.tmux_process import TmuxAnswer, call_tmux

# Calling it starts to watch; what it returns says whether this message has been submitted since.
Watch = Callable[[], Callable[[], bool]]
# Why the runtime cannot take a message just now, or None; this passes, so it is worth waiting for.
Hesitate = Callable[[], str | None]

_POLL_SECONDS = 0.03
# Looking for an event reads a file, looking at the screen takes a process.
_EVENT_SECONDS = 0.005
_SCREEN_SECONDS = 0.1
_TAIL = 24
# Brackets of our own instead of `paste-buffer -p`: a CLI that is just starting shows its input line before it
# asks tmux for brackets, and would take the letters for keys.
_PASTE_BEGINS = ("1b", "5b", "32", "30", "30", "7e")
_PASTE_ENDS = ("1b", "5b", "32", "30", "31", "7e")


class Pace(Struct, frozen=True):
    """In seconds. `settle` is how long after the text shows Enter is pressed: sooner would be part of the
    paste.

    `draft` is how long a draft has to stay: the last message stays on the screen until the CLI redraws it.
    """

    lock: float = 60.0
    ready: float = 20.0
    draft: float = 1.5
    settle: float = 0.15
    paste: float = 3.0
    confirm: float = 10.0
    event: float = 2.0
    again: float = 1.5


def deliver(
    socket: str | None,
    pane_id: str,
    text: str,
    *,
    lock: Path,
    screen: ScreenRules,
    watch: Watch | None = None,
    hesitate: Hesitate = lambda: None,
    runtime_pid: int | None = None,
    pace: Pace | None = None,
) -> Delivery:
    """UsageError for text that no terminal can carry; anything else that goes wrong is in the Delivery.

    `lock` is the pane's own, so that two senders never mix. `watch` is called under it, just before Enter, so
    that what it returns, which says whether the runtime has reported a message since, is about this message.
    `runtime_pid` is the process that has to be in the foreground.
    """
    require_deliverable(text)
    pace = pace or Pace()
    try:
        with file_lock(lock, wait=pace.lock):
            return _Attempt(socket, pane_id, text, screen, watch, hesitate, runtime_pid, pace).run()
    except LockTaken:
        return Delivery("held", "another message is being delivered")


class _Look(Struct, frozen=True):
    """One look at the pane."""

    pane: PaneInput
    reading: Reading
    squeezed: str


class _Ended(Exception):
    """The attempt is over; the argument is its Delivery."""

    def __init__(self, delivery: Delivery) -> None:
        super().__init__(delivery.reason)
        self.delivery = delivery


class _Attempt(Struct, frozen=True):
    socket: str | None
    pane_id: str
    text: str
    rules: ScreenRules
    watch: Watch | None
    hesitate: Hesitate
    runtime_pid: int | None
    pace: Pace

    def run(self) -> Delivery:
        try:
            before = self.wait_for_room()
        except _Ended as end:
            return end.delivery
        except NotAnswered as unknown:
            return Delivery("held", str(unknown))
        try:
            self.paste()
            shown = self.wait_until_shown(before)
            return self.submit(shown)
        except _Ended as end:
            return end.delivery
        except NotAnswered as unknown:
            return Delivery("failed", f"it was pasted; what happened then is unknown: {unknown}")

    def look(self) -> _Look:
        answer = self.call(
            ("display-message", "-p", "-t", self.pane_id, INPUT_FACTS),
            ("capture-pane", "-p", "-e", "-t", self.pane_id),
        )
        try:
            pane = read_input(answer)
        except PaneGone as gone:
            raise _Ended(Delivery("failed", str(gone))) from None
        if pane.blocked:
            raise _Ended(Delivery("held", pane.blocked))
        captured = answer.out.partition("\n")[2]
        return _Look(pane, read_screen(captured, self.rules), _squeezed(plain(captured)))

    def wait_for_room(self) -> _Look:
        """A look at a pane that can be typed into. A runtime that is just starting is given time."""
        deadline = time.monotonic() + self.pace.ready
        draft_since: float | None = None
        while True:
            not_yet = self.hesitate()  # before the look, because what ends in between shows on the screen
            look, now = self.look(), time.monotonic()
            if look.pane.in_mode:
                self.call(("copy-mode", "-q", "-t", self.pane_id))
                look = self.look()
            self.hold_for_a_dialog(look)
            if not_yet is None:
                self.hold_without_runtime(look)
                draft_since = (draft_since or now) if look.reading.draft else None
                if draft_since and now - draft_since >= self.pace.draft:
                    self.hold_for_a_draft(look)
                elif look.reading.ready or not (self.rules.ready or draft_since):
                    return look
            if time.monotonic() > deadline:
                raise _Ended(Delivery("held", not_yet or "its input line is not on the screen"))
            time.sleep(_POLL_SECONDS)

    def hold_for_a_dialog(self, look: _Look) -> None:
        if look.reading.dialog:
            raise _Ended(Delivery("held", f"a dialog is open: {look.reading.dialog}", held_by="dialog"))

    def hold_for_a_draft(self, look: _Look) -> None:
        if look.reading.draft:
            reason = f"an unfinished draft is in the input line: {look.reading.draft}"
            raise _Ended(Delivery("held", reason, held_by="draft"))

    def hold_without_runtime(self, look: _Look) -> None:
        reason = why_not_the_runtime(look.pane.command, look.pane.pid, self.runtime_pid)
        if reason is not None:
            raise _Ended(Delivery("held", reason))

    def paste(self) -> None:
        buffer = f"af-{os.getpid()}-{os.urandom(4).hex()}"
        answer = call_tmux(
            self.socket,
            (
                ("load-buffer", "-b", buffer, "-"),
                ("copy-mode", "-q", "-t", self.pane_id),
                ("send-keys", "-t", self.pane_id, "-H", *_PASTE_BEGINS),
                ("paste-buffer", "-d", "-b", buffer, "-t", self.pane_id),
                ("send-keys", "-t", self.pane_id, "-H", *_PASTE_ENDS),
            ),
            stdin=self.text.encode(),
        )
        if answer.code:
            self.call(("send-keys", "-t", self.pane_id, "-H", *_PASTE_ENDS))
            self.call(("delete-buffer", "-b", buffer))
            raise _Ended(Delivery("failed", f"tmux did not paste: {answer.err}"))

    def wait_until_shown(self, before: _Look) -> _Look:
        """Wait until the screen shows the end of the text, or a CLI's word for it, or has changed and is
        quiet.

        Settling only counts from then on, because a long paste takes time to arrive.
        """
        latest = time.monotonic() + self.pace.paste + len(self.text) / 100_000
        shown_since, quiet_since, last = None, time.monotonic(), before
        draft = before.reading.draft
        while True:
            # once it shows, nothing is decided before it has settled, and each look takes a process
            settled_in = 0.0 if shown_since is None else shown_since + self.pace.settle - time.monotonic()
            time.sleep(max(_POLL_SECONDS, settled_in))
            look, now = self.look(), time.monotonic()
            if look.squeezed != last.squeezed:
                quiet_since, last = now, look
            if not self.is_shown(before, look):
                shown_since = None
            elif shown_since is None or look.reading.draft != draft:  # still arriving
                shown_since, draft = now, look.reading.draft
            settled = shown_since is not None and now - shown_since >= self.pace.settle
            stays = look.squeezed != before.squeezed and now - quiet_since > 4 * self.pace.settle
            if settled or stays or now > latest:
                return look

    def is_shown(self, before: _Look, look: _Look) -> bool:
        tail = _squeezed(self.text)[-_TAIL:]
        return any(
            look.squeezed.count(evidence) > before.squeezed.count(evidence)
            for evidence in (tail, "[Pasted", "[paste")
        )

    def submit(self, shown: _Look) -> Delivery:
        submitted = self.watch() if self.watch else None
        self.press_enter(shown)
        began = time.monotonic()
        presses, next_press, empty_since = 1, began + self.pace.again, None
        while True:
            if self.has_come(submitted):
                return Delivery("submitted", source="event")
            look, now = self.look(), time.monotonic()
            empty_since = (empty_since or now) if self.has_left(shown, look) else None
            if empty_since and now - empty_since > (self.pace.event if submitted else self.pace.settle):
                return Delivery("submitted", source="screen")
            if now - began > self.pace.confirm:
                return Delivery("failed", _not_confirmed(presses))
            if now > next_press and self.may_press_again(look, presses):
                self.press_enter(look)
                presses, next_press = presses + 1, now + self.pace.again

    def has_come(self, submitted: Callable[[], bool] | None) -> bool:
        """Whether the event comes before the next look at the screen is due."""
        if submitted is None:
            time.sleep(_POLL_SECONDS)
            return False
        until = time.monotonic() + _SCREEN_SECONDS
        while not (found := submitted()) and time.monotonic() < until:
            time.sleep(_EVENT_SECONDS)
        return found

    def has_left(self, shown: _Look, look: _Look) -> bool:
        """Whether the screen shows that the text is no longer in the input line."""
        if self.rules.draft and shown.reading.draft:
            return look.reading.draft is None and look.reading.dialog is None
        return self.watch is None and look.squeezed != shown.squeezed

    def may_press_again(self, look: _Look, presses: int) -> bool:
        if look.reading.dialog:
            return False
        return presses < 3 if look.reading.draft else presses < 2 and not look.reading.ready

    def press_enter(self, look: _Look) -> None:
        if look.reading.dialog:
            reason = f"the text is in the input line, but a dialog opened: {look.reading.dialog}"
            raise _Ended(Delivery("failed", reason))
        answer = self.call(("send-keys", "-t", self.pane_id, "Enter"))
        if answer.code:
            raise _Ended(Delivery("failed", f"the text was pasted, but Enter was not pressed: {answer.err}"))

    def call(self, *commands: tuple[str, ...]) -> TmuxAnswer:
        return call_tmux(self.socket, commands)


def _squeezed(text: str) -> str:
    """The text without white space, so that wrapped lines compare equal."""
    return "".join(text.split())


def _not_confirmed(presses: int) -> str:
    times = "once" if presses == 1 else f"{presses} times"
    return (
        f"pasted and Enter pressed {times}, but neither an event nor the screen confirms that it was"
        " submitted"
    )
