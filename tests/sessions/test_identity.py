from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_farm.errors import NotFound
from agent_farm.paths import FarmPaths
from agent_farm.runtimes import adapter_names
from agent_farm.sessions.butlers import (
    ButlerError,
    configured_runtime,
    load_butler,
    packaged_claude_md,
    require_claude_md,
)
from agent_farm.sessions.roster import butler_names
from agent_farm.settings import load_settings
from tests.gitrepo import write_files

FULL = """
[butler]
name = "health"
port = 8001
runtime = "demo"
model = "m"
max_concurrent_sessions = 3
max_queued_sessions = 7
[butler.env]
required = ["HEALTH_API"]
optional = ["TZ_NAME"]
[[butler.schedule]]
name = "daily_digest"
cron = "0 8 * * *"
prompt = "Write the digest"
timezone = "Europe/Berlin"
[modules.memory]
[modules.mail]
credentials = ["MAIL_TOKEN"]
"""


def test_a_butler_is_what_its_file_says(tmp_path: Path) -> None:
    write_files(tmp_path, {"codev/roster/health/butler.toml": FULL})
    butler = load_butler(tmp_path)
    assert (butler.name, butler.port, butler.runtime, butler.model) == ("health", 8001, "demo", "m")
    assert (butler.max_concurrent_sessions, butler.max_queued_sessions) == (3, 7)
    assert (butler.required_env, butler.optional_env) == (("HEALTH_API",), ("TZ_NAME",))
    assert butler.module_credentials == ("MAIL_TOKEN",)
    assert butler.memory
    assert [entry.name for entry in butler.schedules] == ["daily_digest"]
    assert butler.directory == tmp_path / "codev/roster/health"
    assert butler.roster == tmp_path / "codev/roster"


def test_defaults(tmp_path: Path) -> None:
    write_files(tmp_path, {"codev/roster/plain/butler.toml": ""})
    butler = load_butler(tmp_path, "plain")
    assert (butler.max_concurrent_sessions, butler.max_queued_sessions, butler.memory) == (1, 100, False)
    assert (butler.session_timeout, butler.transport) == (3600, "http")


def test_a_farm_without_a_roster_has_one_butler_named_after_itself(tmp_path: Path) -> None:
    write_files(tmp_path, {"agent-farm.toml": '[spawn]\nruntime = "demo"\n[env]\npass = ["EXTRA"]\n'})
    butler = load_butler(tmp_path)
    assert butler.name == FarmPaths(tmp_path).farm_name
    assert butler.directory == tmp_path / ".agent-farm/butler"
    assert (butler.runtime, butler.optional_env) == (None, ("EXTRA",))
    assert configured_runtime(tmp_path, load_settings(tmp_path)) == "demo"
    butler.directory.parent.mkdir()  # as the database has done it by then
    require_claude_md(butler)
    assert (butler.directory / "CLAUDE.md").read_text() == packaged_claude_md()
    (butler.directory / "CLAUDE.md").write_text("mine")
    require_claude_md(butler)
    assert (butler.directory / "CLAUDE.md").read_text() == "mine"


def test_with_two_in_the_roster_the_farm_keeps_its_own(tmp_path: Path) -> None:
    write_files(tmp_path, {f"codev/roster/{name}/butler.toml": "" for name in ("a", "b")})
    assert butler_names(tmp_path) == ["a", "b"]
    assert load_butler(tmp_path).name == FarmPaths(tmp_path).farm_name
    assert load_butler(tmp_path).roster == tmp_path / "codev/roster"
    assert load_butler(tmp_path, "b").name == "b"
    own = FarmPaths(tmp_path).farm_name
    with pytest.raises(NotFound, match="No butler aa") as caught:
        load_butler(tmp_path, "aa")
    assert caught.value.why == f"Did you mean a? There are: a, b, {own}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[butler]\nprot = 1", r"unknown key butler\.prot"),
        ("[butlers]", "unknown key butlers"),
        ('[butler]\nname = "other"', r"butler\.name is other"),
        ("[butler]\nport = true", r"butler\.port must be a whole number"),
        ("[butler]\nmax_concurrent_sessions = 0", "at least 1"),
        ('[butler.env]\nrequired = "A"', r"butler\.env\.required must list"),
        ('[butler.env]\nrequired = ["A B"]', r"butler\.env\.required must list"),
        ('[[butler.schedule]]\nname = "a b"\ncron = "x"\nprompt = "x"', "schedule a b: 'a b' cannot be"),
        ('[[butler.schedule]]\nname = "a"\nprompt = "x"', r"butler\.schedule\.cron must be a string"),
        ('[butler]\nschedule = "daily"', r"butler\.schedule must be tables"),
        ('[butler]\ntransport = "stdio"', r"butler\.transport must be http or sse"),
        ("[modules]\nmemory = true", r"modules\.memory must be a table"),
        ('[modules.memory]\nenabled = "no"', r"modules\.memory\.enabled must be true or false"),
        ("[butler]\nruntime = 5", r"butler\.runtime must be a string"),
        ("[butler]\nmodel = 5", r"butler\.model must be a string"),
        (
            '[[butler.schedule]]\nname = "a"\ncron = "0 8 * * *"\nprompt = "x"\ntimezone = 5',
            "timezone must be",
        ),
        (
            '[[butler.schedule]]\nname = "a"\ncron = "every day"\nprompt = "x"',
            "schedule a: 'every day' is not a cron expression",
        ),
        (
            '[[butler.schedule]]\nname = "a"\ncron = "0 8 * * *"\nprompt = "x"\ntimezone = "Nowhere"',
            "schedule a: 'Nowhere' is not a time zone",
        ),
        (
            '[[butler.schedule]]\nname = "a"\ncron = "0 8 * * *"\nprompt = "x"\nlate = inf',
            "schedule a: late is not a number of seconds",
        ),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    write_files(tmp_path, {"codev/roster/health/butler.toml": text})
    with pytest.raises(ButlerError, match=message):
        load_butler(tmp_path, "health")


def test_an_unknown_runtime_is_refused_with_what_exists(tmp_path: Path) -> None:
    write_files(tmp_path, {"codev/roster/health/butler.toml": '[butler]\nruntime = "clade"\n'})
    with pytest.raises(ButlerError, match=r"butler\.toml: butler\.runtime is 'clade'") as caught:
        load_butler(tmp_path, "health")
    assert caught.value.why == f"Did you mean claude-code? There are: {', '.join(adapter_names())}"
    assert caught.value.hint == "af runtimes"


def test_the_settings_runtime_is_looked_at_where_it_counts(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "agent-farm.toml": '[spawn]\nruntime = "clade"\n',
            "codev/roster/health/butler.toml": "",
            "codev/roster/mail/butler.toml": '[butler]\nruntime = "demo"\n',
        },
    )
    for name in (None, "health"):
        with pytest.raises(ButlerError, match=r"agent-farm\.toml: spawn\.runtime is 'clade'"):
            load_butler(tmp_path, name)
    assert load_butler(tmp_path, "mail").runtime == "demo"


def test_a_runtime_that_the_repository_declares_is_known(tmp_path: Path) -> None:
    declared = {"runtimes": {"own": {"adapter": "tools/own"}}}
    write_files(
        tmp_path,
        {
            "agent_runtime.json": json.dumps(declared),
            "codev/roster/health/butler.toml": '[butler]\nruntime = "own"\ntransport = "sse"\n',
        },
    )
    assert load_butler(tmp_path, "health").runtime == "own"


@pytest.mark.parametrize(
    ("runtime", "speaks"), [("codex", False), ("demo", False), ("claude-code", True), ("gemini", True)]
)
def test_sse_is_refused_for_a_runtime_that_does_not_speak_it(
    tmp_path: Path, runtime: str, speaks: bool
) -> None:
    text = f'[butler]\nruntime = "{runtime}"\ntransport = "sse"\n'
    write_files(tmp_path, {"codev/roster/health/butler.toml": text})
    if speaks:
        assert load_butler(tmp_path, "health").transport == "sse"
        return
    with pytest.raises(ButlerError, match=r"butler\.transport is sse") as caught:
        load_butler(tmp_path, "health")
    assert caught.value.why == f'{runtime} only speaks streamable HTTP: write transport = "http".'
