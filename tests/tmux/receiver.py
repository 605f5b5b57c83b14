"""A small stand-in for an AI CLI: a raw terminal, bracketed paste, an input line, messages kept as bytes.

`receiver.py FILE [--shown HOW] [--swallow N] [--dialog] [--draft TEXT] [--unasked]`: each submitted message
becomes one line of hex in FILE. A carriage return that comes too soon after a paste is taken as part of it.
"""

from __future__ import annotations

import argparse
import os
import termios
import time
import tty

TOO_SOON = 0.1
BEGIN, END = b"\x1b[200~", b"\x1b[201~"


class Receiver:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.swallow = options.swallow
        self.draft = options.draft.encode()
        self.pending = b""
        self.pasted_at = 0.0

    def run(self) -> None:
        os.write(1, (b"" if self.options.unasked else b"\x1b[?2004h") + b"welcome\r\n")
        if self.options.dialog:
            os.write(1, b"rx? delete everything? Enter for yes\r\n")
        self.show()
        while data := os.read(0, 65536):
            self.pending += data
            self.take()
            self.show()

    def take(self) -> None:
        while self.pending:
            if self.pending.startswith(BEGIN):
                end = self.pending.find(END)
                if end < 0:
                    return
                self.draft += self.pending[len(BEGIN) : end].replace(b"\r", b"\n")
                self.pending = self.pending[end + len(END) :]
                self.pasted_at = time.monotonic()
                continue
            key, self.pending = self.pending[:1], self.pending[1:]
            if key == b"\r" and time.monotonic() - self.pasted_at < TOO_SOON:
                self.draft += b"\n"
            elif key == b"\r":
                self.submit()
            elif key == b"\x1b" and BEGIN.startswith(key + self.pending):
                self.pending = key + self.pending
                return
            else:
                self.draft += key

    def submit(self) -> None:
        if self.swallow:
            self.swallow -= 1
            return
        with open(self.options.file, "a") as file:
            file.write(self.draft.hex() + "\n")
        os.write(1, b"\r\x1b[Jrx> %d bytes taken\r\n" % len(self.draft))
        self.draft = b""

    def show(self) -> None:
        shown = self.draft[-40:].replace(b"\n", b" ")
        if self.options.shown == "collapsed" and b"\n" in self.draft:
            shown = b"[Pasted text +%d lines]" % self.draft.count(b"\n")
        if self.options.shown == "never":
            shown = b""
        placeholder = b"" if shown else b"\x1b[7mT\x1b[0;2mry a question\x1b[0m"
        os.write(1, b"\r\x1b[Jrx> " + shown + placeholder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--shown", default="tail", choices=("tail", "collapsed", "never"))
    parser.add_argument("--swallow", type=int, default=0)
    parser.add_argument("--dialog", action="store_true")
    parser.add_argument("--draft", default="")
    parser.add_argument("--unasked", action="store_true")
    tty.setraw(0, termios.TCSANOW)
    Receiver(parser.parse_args()).run()


if __name__ == "__main__":
    main()
