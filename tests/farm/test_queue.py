"""Builders that wait: for room, or for another one's work; none is lost, none overtakes."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af, end_processes
from tests.farm.stopping import killed
from tests.farm.traces import end_tmux, traces
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until


def spawn(af: Af, *args: str) -> dict[str, Any]:
    done = af("spawn", "--runtime", "demo", "--json", *args)
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def states(af: Af) -> dict[str, str]:
    builders = json.loads(af("status", "--json").stdout)["builders"]
    return {one["id"]: one["status"]["state"] for one in builders}


@pytest.fixture
def limited(repo: Path) -> Path:
    (repo / "agent-farm.toml").write_text("[limits]\nmax_builders = 1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "settings")
    return repo


def test_who_finds_no_room_waits_and_starts_when_another_one_ends(limited: Path, af: Af) -> None:
    """By the end of its launcher alone: no command is typed meanwhile."""
    first = spawn(af, "Work", "--name", "first")["builder"]
    assert af("wait", "first", "--timeout", "300").returncode == 0
    second = spawn(af, "[[exit:0]]", "--name", "second")["builder"]
    assert (first["state"], second["state"]) == ("running", "queued")
    assert second["status"]["reason"] == "place 1 of 1"
    assert Path(second["prompt_file"]).read_text() == "[[exit:0]]"
    assert not Path(second["worktree"]).exists()
    assert traces(limited).ports == {"first"}
    assert "second" in af("status").stdout
    assert af("send", "first", "[[exit:0]]").returncode == 0
    exit = limited / ".agent-farm/runs/second/exit.json"
    wait_until(exit.exists, what="the second one's end")
    assert states(af) == {"first": "exited", "second": "exited"}
    assert list((limited / ".agent-farm/queue").iterdir()) == []


def test_one_end_starts_the_next_and_the_order_is_kept(limited: Path, af: Af) -> None:
    tasks = limited.parent / "tasks"
    tasks.write_text("\n\n".join(f"Task {number} [[exit:0]]" for number in range(5)))
    made = spawn(af, "--tasks-file", str(tasks))["builders"]
    assert [one["title"] for one in made] == [f"Task {number} [[exit:0]]" for number in range(5)]
    runs = [Path(one["prompt_file"]).parent for one in made]
    wait_until(lambda: all((run / "exit.json").exists() for run in runs), what="all ends")
    lives = [life(run) for run in runs]
    assert [one.begin for one in lives] == sorted(one.begin for one in lives)
    assert most_at_once(lives) == 1


def test_who_waited_does_not_start_by_what_nobody_agreed_to(limited: Path, af: Af) -> None:
    """`--yes` is said to what the repository wants then, and not to what lands while it waits."""
    commit_files(
        limited,
        {
            "agent-farm.toml": '[limits]\nmax_builders = 1\n[worktree]\nsetup = "sh setup.sh"\n',
            "setup.sh": "true\n",
        },
    )
    spawn(af, "--yes", "Work", "--name", "first")
    assert spawn(af, "--yes", "More", "--name", "second")["builder"]["state"] == "queued"
    commit_files(limited, {"setup.sh": "touch ran\n"})
    assert af("stop", "first").returncode == 0
    done = af("queue")
    assert "second" in done.stdout + done.stderr
    assert states(af)["second"] == "queued"
    assert "nobody has agreed to" in af("status", "--json").stdout
    assert not list(limited.glob(".builders/*/ran"))


def test_a_task_that_cannot_be_spawned_keeps_all_from_starting(limited: Path, af: Af) -> None:
    tasks = '{"task": "a"}\n{"task": "b", "base": "nowhere"}\n{"task": "42"}\n'
    done = af("spawn", "--runtime", "demo", "--tasks-file", "-", input=tasks)
    assert done.returncode == 2
    assert "Nothing was spawned: 2 of 3 tasks are not possible" in done.stderr
    assert "task 2: No such commit: 'nowhere'" in done.stderr
    assert "task 3: 42 alone is not a task" in done.stderr
    assert traces(limited).left() == {}


def test_who_is_taken_out_of_the_queue_leaves_the_text_alone(limited: Path, af: Af) -> None:
    spawn(af, "One", "--name", "one")
    for verb in ("stop", "prune"):
        spawn(af, "Two", "--name", "two")
        done = af(verb, "two", "--json")
        assert done.returncode == 0, done.stdout
        (gone,) = json.loads(done.stdout)["forgotten"]
        assert Path(gone["prompt"]).read_text() == "Two"
        assert traces(limited).records == {"one"}
        assert list((limited / ".agent-farm/queue").iterdir()) == []
        assert not (limited / ".agent-farm/runs/two").exists()
    doctor = af("doctor")
    assert "problem" not in doctor.stdout, doctor.stdout
    kept = limited / ".agent-farm/forgotten"
    assert "Nothing to delete" in af("prune", "--expire", "1h").stderr
    assert len(list(kept.iterdir())) == 2
    assert af("prune", "--expire", "0").stdout.count("two of ") == 2
    assert list(kept.iterdir()) == []


def test_an_order_that_cannot_be_read_holds_up_nobody(limited: Path, af: Af) -> None:
    for name in ("first", "second", "third"):
        spawn(af, "Work", "--name", name)
    file = limited / ".agent-farm/queue/second.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"request": {"copies": "many"}}))
    assert af("stop", "first").returncode == 0
    done = af("queue")
    assert "bug" not in done.stderr, done.stderr
    wait_until(lambda: states(af)["third"] != "queued", what="the third one's start")
    assert states(af)["second"] == "queued"
    assert "The task of second cannot be read" in af("status", "--json").stdout


def test_who_was_asked_for_where_another_repository_lies_now_starts_in_its_own(limited: Path, af: Af) -> None:
    commit_files(limited, {"part/file": "x\n"})
    spawn(af, "Work", "--name", "first")
    asked = af("spawn", "--runtime", "demo", "More", "--name", "second", cwd=limited / "part")
    assert asked.returncode == 0, asked.stderr
    git(limited / "part", "init", "-q")
    assert af("stop", "first").returncode == 0
    wait_until(lambda: af("queue").returncode or states(af)["second"] != "queued", what="its start")
    assert states(af)["second"] != "queued", af("status").stdout
    assert ".agent-farm" not in (limited / "part/.git/info/exclude").read_text()


def test_with_stop_idle_a_builder_whose_turn_has_ended_gives_up_its_place(limited: Path, af: Af) -> None:
    assert af("config", "set", "limits.stop_idle", "true").returncode == 0
    spawn(af, "[[ask:Really?]]", "--name", "asks")
    assert af("wait", "asks", "--for", "waiting", "--timeout", "300").returncode == 0
    spawn(af, "Work", "--name", "second")
    assert af("queue").stdout.startswith("second waits (place 1 of 1)")
    assert af("send", "asks", "--keys", "1").returncode == 0
    assert af("wait", "asks", "--for", "idle", "--timeout", "300").returncode == 0
    assert af("queue").returncode == 0
    assert states(af)["asks"] == "stopped"
    assert states(af)["second"] in ("preparing", "working", "idle")


def test_stopping_all_starts_nobody(limited: Path, af: Af) -> None:
    for name in ("one", "two", "three"):
        spawn(af, "Work", "--name", name)
    assert af("stop", "--all").returncode == 0
    assert states(af) == {"one": "stopped"}


def test_a_builder_that_waits_is_no_half_made_one(limited: Path, af: Af) -> None:
    spawn(af, "One", "--name", "one")
    spawn(af, "Two", "--name", "two")
    assert "problem" not in af("doctor").stdout
    assert af("send", "two", "hello").returncode == 5
    for words in (["resume", "two"], ["attach", "two"], ["merge", "two"], ["diff", "two"]):
        done = af(*words)
        assert done.returncode in (1, 2), words
        assert "error: " in done.stderr
        if words[0] != "resume":
            assert "two has not started\n  It has no work yet.\nhint: af queue" in done.stderr
    spawn(af, "Three", "--name", "three", "--after", "two")
    four = spawn(af, "Four", "--name", "four", "--after", "one,two")["builder"]
    assert four["status"]["reason"].endswith("for one and two to land")
    stopped = af("stop", "two").stderr
    for name in ("three", "four"):
        assert f"{name} still waits for two to land; af stop {name} ends that" in stopped
    assert "for two, which is not there any more, to land" in af("queue").stdout
    assert "for one and two, which is not there any more, to land" in af("queue").stdout
    assert af("conflicts").returncode == 0


def test_after_waits_for_the_work_to_land_and_starts_from_there(repo: Path, af: Af) -> None:
    spawn(af, "[[write:a.txt]]", "--name", "first")
    assert af("wait", "first", "--timeout", "300").returncode == 0
    second = spawn(af, "Then this", "--name", "second", "--after", "first")["builder"]
    assert second["status"]["reason"] == "place 1 of 1; for first to land"
    assert af("queue").stdout.startswith("second waits (place 1 of 1; for first to land)")
    assert af("merge", "first").returncode == 0
    wait_until(lambda: states(af)["second"] in ("working", "idle"), what="the second one's start")
    worktree = Path(second["worktree"])
    assert (worktree / "a.txt").exists()
    assert git(worktree, "merge-base", "HEAD", "main") == git(repo, "rev-parse", "main")
    third = spawn(af, "At once", "--name", "third", "--after", "first")["builder"]
    assert (third["state"], third["base"]) == ("running", "main")


def test_after_a_builder_that_has_made_nothing_yet_waits(repo: Path, af: Af) -> None:
    """Nothing of it is left to land, and that is no landing."""
    spawn(af, "--shell", "--name", "first")
    assert spawn(af, "Then this", "--after", "first")["builder"]["state"] == "queued"
    assert [one["id"] for one in json.loads(af("queue", "--json").stdout)["started"]] == []


def test_one_that_cannot_be_started_says_why_and_holds_up_nobody(repo: Path, af: Af) -> None:
    git(repo, "branch", "old")
    (repo / "agent-farm.toml").write_text("[limits]\nmax_builders = 1\n")
    spawn(af, "Work", "--name", "one")
    spawn(af, "Work", "--name", "two", "--base", "old")
    spawn(af, "Work", "--name", "three")
    git(repo, "branch", "-D", "old")
    assert af("stop", "one").returncode == 0
    wait_until(lambda: states(af)["three"] in ("working", "idle"), what="the third one's start")
    (two,) = json.loads(af("status", "two", "--json").stdout)["builders"]
    assert two["status"]["state"] == "queued"
    assert "cannot be started: No such commit: 'old'" in two["status"]["reason"]
    assert Path(two["prompt_file"]).read_text() == "Work"


def somebody_starts(home: Path) -> bool:
    """A spawn leaves a process behind that looks whether the queue can go on."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes()
            if (
                b"agent_farm" in line
                and line.endswith(b"\0queue\0")
                and f"HOME={home}".encode() in (entry / "environ").read_bytes()
            ):
                return True
    return False


def test_who_looks_at_the_queue_has_nobody_else_look(limited: Path, home: Path, af: Af) -> None:
    for name in ("one", "two"):
        spawn(af, "Work", "--name", name)
    wait_until(lambda: not somebody_starts(home), what="the queue at rest")
    os.utime(limited / ".agent-farm/locks/queue.lock", (0, 0))
    assert killed(limited, "'queue'", "queue").returncode == 0


@pytest.mark.slow
def test_killed_at_each_step_of_its_start_it_still_waits_or_runs(limited: Path, home: Path, af: Af) -> None:
    """`af queue` is killed before its N-th step; the next one starts it."""
    settings = limited / "agent-farm.toml"
    spawn(af, "--shell", "--name", "one")
    for step in range(1, 400, 2):
        settings.write_text("[limits]\nmax_builders = 1\n")
        spawn(af, f"Later {step}", "--name", "two", "--permissions", "ask")
        wait_until(lambda: not somebody_starts(home), what="the queue at rest")
        settings.write_text("[limits]\nmax_builders = 2\n")
        done = killed(limited, step, "queue")
        wait_until(lambda: af("queue").returncode == 0 and states(af)["two"] != "queued", what=f"step {step}")
        assert (limited / ".agent-farm/runs/two/prompt.md").read_text() == f"Later {step}"
        assert traces(limited).records == {"one", "two"}
        pruned = af("prune", "two", "--stop", "--discard-commits", "--discard-changes")
        assert pruned.returncode == 0, done.stderr + pruned.stderr
        if done.returncode == 0:
            break
    assert step > 20, "the walk ended early"


@dataclass(frozen=True)
class Life:
    """Of one run: from its launcher's first word to its last one, or for good."""

    begin: float
    end: float


def life(run: Path) -> Life:
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    first = next(event["run"] for event in events)
    own = [event for event in events if event["run"] == first and event["source"] == "launcher"]
    ends = [event["at"] for event in own if event["event"] in ("exited", "failed")]
    return Life(own[0]["at"], ends[0] if ends else float("inf"))


def most_at_once(lives: list[Life]) -> int:
    return max(sum(other.begin <= one.begin < other.end for other in lives) for one in lives)


@pytest.mark.slow
def test_a_hundred_tasks_with_room_for_eight_and_a_reboot(repo: Path, home: Path, af: Af) -> None:
    (repo / "agent-farm.toml").write_text("[limits]\nmax_builders = 8\n")
    tasks = "\n".join(f"- [ ] Task {number} [[sleep:0.5]] [[exit:0]]" for number in range(100))
    done = af("spawn", "--runtime", "demo", "--tasks-file", "-", "--json", input=tasks, timeout=600)
    made = json.loads(done.stdout)["builders"]
    assert len(made) == 100
    runs = {one["id"]: repo / ".agent-farm/runs" / one["id"] for one in made}

    def ended() -> set[str]:
        return {id for id, run in runs.items() if (run / "exit.json").exists()}

    wait_until(lambda: len(ended()) >= 30, timeout=600, what="thirty ends")
    end_tmux()
    end_processes(home)
    before = states(af)
    assert set(before) == set(runs)
    assert "lost" in before.values()
    lost = {id for id, state in before.items() if state == "lost"}
    begun = {id: life(run) for id, run in runs.items() if (run / "events.jsonl").exists()}
    assert most_at_once([one for id, one in begun.items()]) <= 8
    recovered = af("recover", "--yes", "--continue", "[[exit:0]]", timeout=600)
    assert recovered.returncode == 0, recovered.stderr
    wait_until(lambda: len(ended()) == 100, timeout=1200, what="all ends")
    # the last may have ended before the process that started them has recorded that they run
    wait_until(lambda: set(states(af).values()) == {"exited"}, what="all exited")
    wait_until(lambda: not list((repo / ".agent-farm/queue").glob("*")), what="an empty queue")
    # one that was lost before it had said a word begins again with the others that come back
    order = [life(run).begin for id, run in runs.items() if id not in lost]
    # those that start together say their first word in the order in which the machine lets them
    assert all(one <= later for one, later in zip(order, order[8:], strict=False))
    assert most_at_once([life(run) for id, run in runs.items() if id not in lost]) <= 8
