"""Calls a machine of the fleet: one call is one `af fleet answer` there, which carries out one verb.

Answers come from a machine that is trusted less than this one: they are read line by line, with bounds, and
whoever asked checks every field. Only this module knows how a machine is reached: by ssh, or as part of a
cluster, where commits travel in calls, too (`pack_calls.py`).
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agent_farm import __version__
from agent_farm.consent import Shown
from agent_farm.errors import (
    CODES_OF_ROOMS,
    KINDS,
    AgentFarmError,
    ConsentNeeded,
    TimedOut,
    Unreachable,
    UsageError,
    error_of,
)
from agent_farm.fleet.book import FARM_NAME, Book, Cluster, Machine, Placed
from agent_farm.git.other_machine import WayThere
from agent_farm.launch import as_command
from agent_farm.printable import printable
from agent_farm.ssh import bounded_copy
from agent_farm.ssh.connection import ask, ssh_argv, ssh_options
from agent_farm.ssh.ssh_url import Address, parse_address

if TYPE_CHECKING:
    from agent_farm.engine.contract import Engine

MARK = b"af-fleet-1"
OF_CLUSTER = "ray://"
USUAL_SECONDS = 120.0
_MOST_LINES, _LONGEST_WORDS = 50, 2000
_MOST_LINES_READ, _LONGEST_LINE_READ = 1000, 100_000  # of what somebody agrees to, which is shown whole
_WITHOUT_HINT = (ConsentNeeded, TimedOut)  # run the same command with --yes here; whoever waits asks again
_OF_AF = re.compile(r"""af [\w ./:@=,…"'-]*""")  # no characters with a meaning for a shell

Tell = Callable[[str], None]


class Call(Struct, frozen=True):
    """What is asked of `farm`, below `directory` there ("" for the usual place), by an `af` of that version.

    `environment` is only for what the call starts. `fences` are builders placed elsewhere since, with the
    lowest term that is valid: those with a lower one are ended before anything else is done.
    """

    software: str
    farm: str
    directory: str
    verb: str
    request: dict[str, Any]
    environment: dict[str, str] = {}
    fences: dict[str, int] = {}

    def __post_init__(self) -> None:
        if not FARM_NAME.fullmatch(self.farm):
            raise ValueError(f"{self.farm!r:.60} cannot be the name of a farm")


def call(
    book: Book,
    host: str,
    verb: str,
    request: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float = USUAL_SECONDS,
    tell: Tell = lambda text: None,
) -> dict[str, Any]:
    """The document that it answers; its own error is raised, and Unreachable if it does not answer."""
    machine = book.machine(host)
    address = address_of(machine)
    asked = Call(
        __version__,
        book.farm,
        address.directory,
        verb,
        dict(request),
        dict(environment or {}),
        book.fences(host),
    )
    cluster = cluster_of(book, host)
    return call_program(address, machine.program, asked, seconds=seconds, tell=tell, cluster=cluster)


def call_several(
    book: Book,
    host: str,
    verb: str,
    requests: Sequence[Mapping[str, Any]],
    *,
    environment: Mapping[str, str],
    seconds: float,
    tell: Tell,
) -> list[dict[str, Any] | AgentFarmError]:
    """Several `place` or `place_again` requests in one call; returns a document or an error for each."""
    if len(requests) == 1:
        return [call(book, host, verb, requests[0], environment=environment, seconds=seconds, tell=tell)]
    asked = {"verb": verb, "requests": list(requests)}
    document = call(book, host, "several", asked, environment=environment, seconds=seconds, tell=tell)
    each, address = document.get("each"), address_of(book.machine(host))
    if not isinstance(each, list) or len(each) != len(requests):
        raise Unreachable(f"{host} has not said what became of {len(requests)} builders")
    found = list[dict[str, Any] | AgentFarmError]()
    for one in each:
        answer = one.get("answer") if isinstance(one, dict) else None
        error = one.get("error") if isinstance(one, dict) else None
        found.append(answer if isinstance(answer, dict) else error_of_machine(address, error))
    return found


def cluster_of(book: Book, host: str) -> Cluster | None:
    """The cluster by which it is reached; None if that is by ssh."""
    if not is_of_cluster(book.machine(host)):
        return None
    if book.cluster is None:
        raise Unreachable(f"{host} is in a cluster, but this farm uses none", hint="af fleet up")
    return book.cluster


def is_of_cluster(machine: Machine) -> bool:
    return machine.address.startswith(OF_CLUSTER)


def address_of(machine: Machine) -> Address:
    """A machine of a cluster is addressed as for ssh, which is how a person would get there."""
    if is_of_cluster(machine):
        return Address(machine.address.removeprefix(OF_CLUSTER))
    return parse_address(machine.address)


def release_slot(book: Book, id: str, placed: Placed) -> None:
    """If the cluster cannot be asked, the slot stays taken; that is the only harm."""
    machine = book.machines.get(placed.host)
    if book.cluster is not None and machine is not None and is_of_cluster(machine):
        with suppress(AgentFarmError):
            engine_of(book.cluster).release(slot_name(book, id, placed.term))


def engine_of(cluster: Cluster) -> Engine:
    from agent_farm.engine.held import HeldEngine  # few farms have a cluster

    return HeldEngine(cluster.address, cluster.tls)


def slot_name(book: Book, id: str, term: int) -> str:
    """A builder that moves has two slots, until it is known to have arrived."""
    return f"{book.farm}/{id}@{term}"


def builder_of(book: Book, name: str) -> str | None:
    """The builder of this farm that has the slot; None if it is another farm's."""
    farm, _, own = name.partition("/")
    return own.partition("@")[0] if farm == book.farm else None


def call_program(
    address: Address,
    program: str,
    asked: Call,
    *,
    seconds: float,
    tell: Tell = lambda text: None,
    cluster: Cluster | None = None,
) -> dict[str, Any]:
    try:
        message = msgspec.json.encode(asked)
    except UnicodeEncodeError as error:
        what = f"The request to {address.host} is not valid UTF-8"
        raise UsageError(what, why=f"It holds {error.object[error.start]!r}.") from error
    if cluster is not None:
        return _answer_in(
            engine_of(cluster).call(address.host, message, seconds=seconds), address, program, tell
        )
    # now: an error would keep it alive, and at exit Python would wait for locks that its threads hold
    with closing(_over_ssh(address, program, message, seconds)) as lines:
        return _answer_in(lines, address, program, tell)


def _answer_in(lines: Iterator[bytes], address: Address, program: str, tell: Tell) -> dict[str, Any]:
    begun = False
    for line in lines:
        if not begun:  # a shell's startup files may print something before
            begun = line.strip() == MARK
            continue
        said = _read(address, line)
        if "told" in said:
            tell(f"{address.host}: {_line(said['told'])}")
        elif "error" in said:
            raise error_of_machine(address, said["error"])
        elif isinstance(said.get("answer"), dict):
            return dict(said["answer"])
    raise Unreachable(f"{address.host} has not answered", why=f"{program} ended without output.")


def _over_ssh(address: Address, program: str, message: bytes, seconds: float) -> Generator[bytes]:
    begun = False
    try:
        for line in ask(address, [program, "fleet", "answer"], message, seconds=seconds, ready=MARK):
            begun = begun or line.strip() == MARK
            yield line
    except Unreachable as error:
        error.began = begun
        raise


def line_to(machine: Machine, *, most_bytes: int) -> WayThere:
    """How git reaches the farm there, with a bound on what a fetch may bring."""
    address = address_of(machine)
    bounded = [sys.executable, "-I", "-S", bounded_copy.__file__, str(most_bytes)]
    ssh = shlex.join([*bounded, "ssh", *ssh_options(), "-T"])
    return WayThere(address.destination, address.port, machine.place, ssh, most_bytes)


def terminal_argv(book: Book, host: str, *words: str, id: str) -> list[str]:
    """A program that runs in this terminal, started by `af` there."""
    machine = book.machine(host)
    address = address_of(machine)
    place = ["--directory", address.directory] if address.directory else []
    return ssh_argv(address, [machine.program, "fleet", *words, *place, book.farm, id], terminal=True)


def by_hand(machine: Machine, *words: str) -> str:
    """The command with which a person does it there, for a hint."""
    address = address_of(machine)
    there = f"cd {shlex.quote(machine.place)} && {shlex.join([machine.program, *words])}"
    return shlex.join(["ssh", "-t", *address.words, there])


def _read(address: Address, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unreachable(f"{address.host} sent an answer that is not JSON", why=repr(line[:80]))
    return found


def _words(text: object) -> str:
    return printable(str(text)[:_LONGEST_WORDS])


def _line(text: object) -> str:
    return " ".join(_words(text).split())


def hint_of_machine(address: Address, text: str) -> str:
    """A command of `af` is for here; any other is for the machine that suggested it."""
    return text if _OF_AF.fullmatch(text) else as_command("ssh", "-t", *address.words, text)


def error_of_machine(address: Address, said: object) -> AgentFarmError:
    """The error that the machine reports, as the class it has here. It cannot report being unreachable, since
    it has answered."""
    said = said if isinstance(said, dict) else {}
    code, found = str(said.get("code")), said.get("evidence")
    evidence = [str(one) for one in found] if isinstance(found, (list, tuple)) else []
    lines = [_words(one) for one in evidence[:_MOST_LINES]]
    why = None if said.get("why") is None else _words(said["why"])
    hint = None if said.get("hint") is None else hint_of_machine(address, _line(said["hint"]))
    what = f"{address.host}: {_line(said.get('what', 'it failed'))}"
    kind = KINDS.get(code)
    if kind in _WITHOUT_HINT:
        hint = None
    consent = None
    if kind is ConsentNeeded and _can_be_read(evidence):
        lines, consent = [printable(one) for one in evidence], _digest_in(said)
    if code not in CODES_OF_ROOMS and (kind is None or issubclass(kind, Unreachable)):
        code = AgentFarmError.code
    return error_of(code, what, why=why, hint=hint, evidence=lines, consent=consent)


def _can_be_read(evidence: Sequence[str]) -> bool:
    return 0 < len(evidence) <= _MOST_LINES_READ and max(map(len, evidence), default=0) <= _LONGEST_LINE_READ


def _digest_in(said: Mapping[str, Any]) -> str | None:
    try:
        return msgspec.convert(said.get("consent"), Shown)
    except msgspec.ValidationError:
        return None
