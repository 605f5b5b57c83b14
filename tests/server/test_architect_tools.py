"""What an architect on `af mcp` does, to the end: real builders, real git, the real stdio server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import Af
from tests.gitrepo import commit_files, git
from tests.server.architect import Architect, architect_over_stdio
from tests.server.serving import tools_of
from tests.sessions.loop import in_loop


async def builder(architect: Architect, task: str, **more: Any) -> str:
    spawned = await architect.done("spawn", {"task": task, "runtime": "demo", **more})
    id = str(spawned["builder"]["id"])
    await architect.done("wait", {"ids": [id], "states": ["idle"], "timeout": 30})
    return id


@in_loop
async def test_stdio_serves_what_the_architects_token_is_good_for(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        tools = await architect.tools()
        assert set(tools) == tools_of("architect")
        assert all(tool.description for tool in tools.values())
        asked = tools["spawn"].input_schema["properties"]
        assert {"permissions", "branch", "role", "shell", "ephemeral"} <= set(asked)
        refused = await architect.refused("report", {"state": "idle", "message": "x"})
        assert "not a tool for an architect" in refused


@in_loop
async def test_from_spawn_to_prune(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        id = await builder(architect, "[[write:notes.txt]]")
        late = await architect.refused("wait", {"ids": [id], "states": ["working"], "timeout": 0.5})
        assert "Not there after 0.5 s" in late
        assert "notes.txt" in (await architect.done("diff", {"id": id}))["diff"]
        assert (await architect.done("conflicts"))["conflicts"] == []
        where = await architect.done("path", {"id": id})
        assert (Path(where["path"]) / "notes.txt").is_file()
        (landed,) = (await architect.done("merge", {"ids": [id]}))["merged"]
        assert (landed["id"], landed["into"], landed["left_behind"]) == (id, "main", [])
        assert git(repo, "rev-parse", "HEAD").strip() == landed["after"]
        assert (repo / "notes.txt").is_file()
        assert "hint: " in await architect.refused("prune", {"ids": [id]})  # it runs still
        assert (await architect.done("stop", {"ids": [id]}))["stopped"] == [id]
        assert (await architect.done("status"))["builders"][0]["status"]["state"] == "stopped"
        pruned = await architect.done("prune", {"ids": [id]})
        assert [one["id"] for one in pruned["removed"]] == [id]
        assert (await architect.done("status"))["builders"] == []


@in_loop
async def test_a_program_changes_settings_and_agrees_to_none(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        stored = await architect.done("config_set", {"name": "merge.check", "value": "touch ran"})
        assert stored["agreed"] is False
        assert (await architect.done("config_list"))["not_agreed"] == ["merge.check"]
        assert "touch ran" in await architect.refused("config_agree")
        mine = {"name": "merge.check", "value": "touch ran", "user": True}
        refused = await architect.refused("config_set", mine)
        assert "user is unknown to this tool; it takes name, value" in refused
        assert (await architect.done("config_unset", {"name": "merge.check"}))["was_set"] is True
        assert "No runtime nope" in await architect.refused(
            "config_set", {"name": "spawn.runtime", "value": "nope"}
        )


@in_loop
async def test_no_tool_offers_what_another_machine_or_a_command_says(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        offered = (await architect.tools())["trigger"].input_schema["properties"]
        hidden = {"yes": True, "attached": True, "for_home": True, "new_id": None}
        assert not offered.keys() & hidden.keys()
        for name, value in hidden.items():
            refused = await architect.refused("trigger", {"prompt": "x", name: value})
            assert f"{name} is unknown to this tool" in refused


@in_loop
async def test_what_was_removed_comes_back(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        id = await builder(architect, "[[write:notes.txt]]")
        await architect.done("merge", {"ids": [id]})
        await architect.done("prune", {"ids": [id], "stop": True})
        (kept,) = (await architect.done("removed"))["removed"]
        back = await architect.done("restore", {"id": id, "epoch": kept["epoch"]})
        assert (back["builder"]["id"], back["builder"]["status"]["state"]) == (id, "stopped")
        assert (await architect.done("removed"))["removed"] == []
        assert "has not been removed" in await architect.refused("restore", {"id": id})
        assert (await architect.done("doctor"))["problems"] == 0
        assert (await architect.done("doctor_fix"))["problems"] == 0


@in_loop
async def test_stop_and_resume_and_what_is_seen_of_it(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        id = await builder(architect, "[[say:first light]]")
        assert "first light" in (await architect.done("capture", {"id": id}))["screen"]
        await architect.done("stop", {"ids": [id]})
        assert "error" not in await architect.refused("capture", {"id": id})
        again = await architect.done("resume", {"id": id})
        assert again["continues"] is True
        await architect.done("wait", {"ids": [id], "states": ["idle"], "timeout": 30})
        assert "is running" in await architect.refused("resume", {"id": id})
        events = (await architect.done("logs", {"id": id}))["events"]
        assert "stopped" in [event["event"] for event in events]
        newest = (await architect.done("logs", {"id": id, "limit": 1}))["events"]
        assert newest == events[-1:]
        assert "history: expected" in await architect.refused("capture", {"id": id, "history": -1})
        assert "limit: expected" in await architect.refused("logs", {"id": id, "limit": -1})
        both = await architect.refused("stop", {"ids": []})
        assert "Name the builders" in both


@in_loop
async def test_keys_answer_a_dialog(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        spawned = await architect.done(
            "spawn", {"task": "[[ask:Really?]] [[say:so be it]]", "runtime": "demo"}
        )
        id = spawned["builder"]["id"]
        await architect.done("wait", {"ids": [id], "states": ["waiting"], "timeout": 30})
        (held,) = (await architect.done("send", {"ids": [id], "text": "hello"}))["deliveries"]
        assert held["outcome"] == "held", held
        assert "cannot press the key" in await architect.refused("send_keys", {"ids": [id], "keys": "Entre"})
        (pressed,) = (await architect.done("send_keys", {"ids": [id], "keys": "1 Enter"}))["deliveries"]
        assert (pressed["outcome"], pressed["reason"]) == ("pressed", "1 Enter")
        await architect.done("wait", {"ids": [id], "states": ["idle"], "timeout": 30})


@in_loop
async def test_what_a_builder_may_be_spawned_with(repo: Path) -> None:
    (repo / "codev").mkdir(exist_ok=True)
    (repo / "codev" / "terse.md").write_text("Be terse.")
    git(repo, "branch", "feature")
    async with architect_over_stdio(repo) as architect:
        order = {"runtime": "demo", "shell": True, "branch": "feature", "role": "codev/terse.md"}
        made = (await architect.done("spawn", {**order, "permissions": "all", "ephemeral": True}))["builder"]
        assert (made["type"], made["branch"], made["permissions"]) == ("shell", "feature", "all")
        assert made["ephemeral"] is True
        assert made["role"] == str(repo / "codev" / "terse.md")
        assert "Be terse." in (repo / ".agent-farm" / "runs" / made["id"] / "role.md").read_text()
        assert "permissions" in await architect.refused("spawn", {"task": "x", "permissions": "root"})
        assert "No role file" in await architect.refused(
            "spawn", {"task": "x", "runtime": "demo", "role": "none.md"}
        )


@in_loop
async def test_no_tool_agrees_to_the_repositorys_commands(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        id = await builder(architect, "[[write:notes.txt]]")
        before = git(repo, "rev-parse", "HEAD")
        (repo / "agent-farm.toml").write_text('[merge]\ncheck = "touch ran"\n')
        refused = await architect.refused("merge", {"ids": [id]})
        assert "touch ran" in refused
        assert f"hint: af merge --yes {id}" in refused
        assert git(repo, "rev-parse", "HEAD") == before
        assert not list((repo / ".builders").glob("*/ran"))
        (repo / "agent-farm.toml").write_text('[runtimes.demo]\ncommand = "./mine"\n')
        refused = await architect.refused("spawn", {"task": "x", "runtime": "demo"})
        assert "./mine" in refused
        assert "No tool can approve that" in refused


@in_loop
async def test_errors_about_several_speak_of_the_tools_arguments(repo: Path) -> None:
    async with architect_over_stdio(repo) as architect:
        both = '{"task": "a", "issue": "1"}\n{"task": "b", "branch": "x", "base": "y"}\n{"task": "42"}'
        for more, says in (
            ({"tasks": both}, "task 1: Flags are mutually exclusive: task text, issue"),
            ({"tasks": both}, "task 2: Flags are mutually exclusive: branch, base"),
            (
                {"spec": "x.md", "item": "all", "copies": 2},
                "item all cannot be combined with copies, runtimes or tasks",
            ),
        ):
            refused = await architect.refused("spawn", {"runtime": "demo", **more})
            assert says in refused
            assert "--" not in refused
        (repo / "agent-farm.toml").write_text('[worktree]\nsetup = "touch ran --now"\n')
        refused = await architect.refused("spawn", {"task": "x", "runtime": "demo", "copies": 2})
        assert "touch ran --now" in refused
        assert "No tool can approve that" in refused


def test_what_failed_of_several_is_said_as_what_fails_alone(repo: Path, af: Af) -> None:
    lost = [af("spawn", "--runtime", "demo", "--shell").stdout.strip() for _ in range(2)]
    subprocess.run(["tmux", "kill-server"], check=True)
    (repo / "agent-farm.toml").write_text('[notify]\ncommand = "true said"\n')

    @in_loop
    async def act() -> None:
        async with architect_over_stdio(repo) as architect:
            failed = (await architect.done("recover"))["failed"]
            assert [one["id"] for one in failed] == lost
            for one in failed:
                assert "No tool can approve that" in one["why"]
                assert one["hint"] == f"af recover --yes {one['id']}"
                assert "true said" in one["evidence"][0]

    act()


def test_an_agreement_given_before_holds(repo: Path, af: Af) -> None:
    (repo / "agent-farm.toml").write_text('[merge]\ncheck = "true"\n')

    @in_loop
    async def act() -> None:
        async with architect_over_stdio(repo) as architect:
            first = await builder(architect, "[[write:a.txt]]")
            assert af("merge", "--yes", first).returncode == 0
            second = await builder(architect, "[[write:b.txt]]")
            assert (await architect.done("merge", {"ids": [second], "strategy": "squash"}))["merged"]

    act()


def test_the_butlers_tools_over_stdio(repo: Path, af: Af) -> None:
    (repo / "agent-farm.toml").write_text('[spawn]\nruntime = "demo"\n')

    @in_loop
    async def act() -> None:
        async with architect_over_stdio(repo) as architect:
            await architect.done("state_set", {"key": "k", "value": "v"})
            assert (await architect.done("state_list"))["state"] == {"k": "v"}
            entry = {"name": "daily", "cron": "0 8 * * *", "prompt": "Digest"}
            assert (await architect.done("schedule_create", entry))["schedule"]["enabled"] is True
            assert (await architect.done("tick"))["fired"] == []
            asked = {"prompt": "[[say:well]]", "context": "hear"}
            result = (await architect.done("trigger", asked))["result"]
            assert (result["success"], result["output"]) == (True, "well")
            kept = (await architect.done("sessions_get", {"session_id": result["session_id"]}))["session"]
            assert (kept["trigger_source"], kept["context"]) == ("external", "hear")
            assert len((await architect.done("sessions_list"))["sessions"]) == 1
            assert (await architect.done("list_builders"))["builders"] == []

    try:
        act()
        listed = json.loads(af("schedule", "list", "--json").stdout)["schedules"]
        assert [one["name"] for one in listed] == ["daily"]
    finally:
        af("butler", "stop", "--now")


@in_loop
async def test_a_name_that_is_no_utf_8_is_answered(repo: Path) -> None:
    odd = os.fsdecode(b"odd-\xff.txt")
    async with architect_over_stdio(repo) as architect:
        ids = [await builder(architect, f"[[write:{name}.txt]]") for name in ("one", "two")]
        for id in ids:
            commit_files(repo / ".builders" / id, {odd: id})
        (conflict,) = (await architect.done("conflicts", {"ids": ids}))["conflicts"]
        assert conflict["files"] == ["odd-?.txt"]
        assert "odd-?.txt" in (await architect.done("diff", {"id": ids[0]}))["diff"]
        await architect.done("merge", {"ids": ids[:1]})
        assert "odd-?.txt" in await architect.refused("merge", {"ids": ids[1:]})
