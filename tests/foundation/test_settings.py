"""agent-farm.toml: every key, its default, its source; what is not understood is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.errors import UsageError
from agent_farm.settings import load_settings
from agent_farm.settings_file import find_key, set_value, unset_value
from agent_farm.settings_keys import KEYS, RUNTIME_KEYS, SettingsError

DESIGN_KEYS = {
    "spawn.runtime", "spawn.model", "spawn.base", "spawn.permissions", "worktree.copy", "worktree.setup",
    "worktree.carry", "ports.per_builder", "env.pass", "tmux.socket", "merge.strategy", "merge.check",
    "limits.max_builders", "notify.command", "pool.size", "server.port",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "farm"
    place.mkdir()
    return place


def write(root: Path, text: str) -> None:
    (root / "agent-farm.toml").write_text(text)


def test_the_keys_are_those_of_the_design() -> None:
    assert {key.name for key in KEYS} >= DESIGN_KEYS
    assert {key.name for key in RUNTIME_KEYS} == {"command", "args", "model", "permissions", "unlock"}


def test_without_a_file_everything_has_its_default(root: Path) -> None:
    settings = load_settings(root, {})
    for key in KEYS:
        assert settings.values[key.name] == key.default
        assert settings.source(key.name) == "default"


def test_every_key_can_be_set(root: Path) -> None:
    write(
        root,
        """
        [spawn]
        runtime = "codex"
        model = "large"
        base = "develop"
        permissions = "ask"
        [worktree]
        copy = [".env"]
        setup = "make"
        uncommitted = true
        carry = ["node_modules"]
        [ports]
        per_builder = 3
        [env]
        pass = ["A_B", "_c"]
        [tmux]
        socket = "farm"
        [merge]
        strategy = "squash"
        check = "make test"
        [limits]
        max_builders = 7
        [notify]
        command = "say it"
        [pool]
        size = 2
        [server]
        port = 4000
        [runtimes.codex]
        command = "/opt/codex"
        args = ["-x"]
        model = "small"
        permissions = "all"
        """,
    )
    settings = load_settings(root, {})
    assert settings.text("spawn.runtime") == "codex"
    assert settings.items("worktree.copy") == (".env",)
    assert settings.flag("worktree.uncommitted") is True
    assert settings.number("ports.per_builder") == 3
    assert settings.items("env.pass") == ("A_B", "_c")
    assert {settings.source(name) for name in DESIGN_KEYS} == {"agent-farm.toml"}
    codex = settings.runtime("codex")
    assert (codex.command, codex.args, codex.model, codex.permissions) == (
        "/opt/codex",
        ("-x",),
        "small",
        "all",
    )
    assert settings.runtime("gemini").command is None


def test_the_environment_wins_and_is_named(root: Path) -> None:
    write(root, '[tmux]\nsocket = "file"\n')
    settings = load_settings(root, {"AF_TMUX_SOCKET": "variable"})
    assert (settings.text("tmux.socket"), settings.source("tmux.socket")) == ("variable", "AF_TMUX_SOCKET")
    assert load_settings(root, {"AF_TMUX_SOCKET": ""}).text("tmux.socket") == "file"


REFUSED = [
    ('[spwan]\nruntime = "x"\n', "unknown key spwan.runtime", "Did you mean spawn.runtime?"),
    ('[spawn]\nruntme = "x"\n', "unknown key spawn.runtme", "Did you mean spawn.runtime?"),
    ('spawn = "x"\n', "unknown key spawn", "spawn."),
    ("xyzzy = 1\n", "unknown key xyzzy", "Known keys: "),
    ("[runtimes.codex]\nbinary = 'x'\n", "unknown key runtimes.codex.binary", "runtimes.codex."),
    ("runtimes = 7\n", "runtimes must be tables", "[runtimes.NAME]"),
    ("[runtimes]\ncodex = 7\n", "runtimes.codex must be a table", ""),
    ("[check]\ncomand = 'x'\n", "unknown key check.comand", "Did you mean check.command?"),
    ("[check]\nlint = 'x'\n", "check.lint must be a table", "[check.lint]"),
    ("[check.lint]\nseconds = 3\n", "unknown key check.lint.seconds", "check.lint.command"),
    ("[check]\nseconds = 0\n", "check.seconds must be at least 1", "It is 0."),
    ("[spawn]\nbase = 7\n", "spawn.base must be a string", "It is 7."),
    ('[spawn]\nbase = ""\n', "spawn.base is empty", "Leave the key out"),
    ('[spawn]\npermissions = "root"\n', "spawn.permissions must be one of ask, edit, all", "'root'"),
    ('[merge]\nstrategy = "octopus"\n', "merge.strategy must be one of", "'octopus'"),
    ('[ports]\nper_builder = "3"\n', "ports.per_builder must be a whole number", "'3'"),
    ("[ports]\nper_builder = -1\n", "ports.per_builder must be at least 0", "-1"),
    ("[pool]\nsize = 100000\n", "pool.size must be at most 100", "100000"),
    ("[ports]\nper_builder = true\n", "ports.per_builder must be a whole number", "True"),
    ("[worktree]\nuncommitted = 1\n", "worktree.uncommitted must be true or false", "1"),
    ('[worktree]\ncopy = ".env"\n', "worktree.copy must be a list of strings", "'.env'"),
    ("[worktree]\ncopy = [1]\n", "worktree.copy must be a list of strings", "[1]"),
    ('[env]\npass = ["A=B"]\n', "env.pass: 'A=B' is not the name of an environment variable", ""),
    ("[runtimes.codex]\npermissions = 'none'\n", "runtimes.codex.permissions must be one of", "'none'"),
    ("[spawn\n", "is not valid TOML", "line 1"),
    ("[spawn.deeper]\nx = 1\n", "unknown key spawn.deeper", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "why"), REFUSED, ids=[what for _, what, _ in REFUSED])
def test_what_is_not_understood_is_refused_by_name(root: Path, text: str, what: str, why: str) -> None:
    write(root, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(root, {})
    assert "agent-farm.toml" in caught.value.what
    assert what in caught.value.what
    assert why in str(caught.value.why)


def test_a_file_that_is_no_text(root: Path) -> None:
    (root / "agent-farm.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"agent-farm\.toml"):
        load_settings(root, {})


def test_a_directory_in_its_place(root: Path) -> None:
    (root / "agent-farm.toml").mkdir()
    with pytest.raises(SettingsError, match=r"Cannot read .*agent-farm\.toml"):
        load_settings(root, {})


# Changing it


@pytest.mark.parametrize("text", ["[.env", "[1]", '["a"]\nmore = "x"'])
def test_a_list_that_is_none_is_refused(root: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"worktree\.copy must be a list of texts"):
        set_value(root, "worktree.copy", text)
    assert not (root / "agent-farm.toml").exists()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("spawn.runtime", "codex", "codex"),
        ("worktree.uncommitted", "true", True),
        ("ports.per_builder", "0", 0),
        ("worktree.copy", ".env, build/ ,", [".env", "build/"]),
        ("worktree.copy", '[".env", "a,b"]', [".env", "a,b"]),
        ("worktree.copy", "[]", []),
        ("runtimes.my-own.command", "x y", "x y"),
        ("notify.command", "echo 'ü' \"q\" # no comment", "echo 'ü' \"q\" # no comment"),
    ],
)
def test_a_value_that_is_set_is_read_back(root: Path, name: str, text: str, value: object) -> None:
    assert set_value(root, name, text) == value
    settings = load_settings(root, {})
    if name.startswith("runtimes."):
        assert settings.runtime("my-own").command == value
    else:
        stored = settings.values[name]
        assert (list(stored) if isinstance(stored, tuple) else stored) == value
    assert unset_value(root, name)
    assert not unset_value(root, name)
    assert load_settings(root, {}) == load_settings(root / "none", {})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("worktree.uncommitted", "yes"),
        ("ports.per_builder", "many"),
        ("ports.per_builder", "-1"),
        ("merge.strategy", "octopus"),
        ("env.pass", "A=B"),
        ("spawn.base", ""),
    ],
)
def test_a_value_that_is_refused_changes_nothing(root: Path, name: str, text: str) -> None:
    write(root, "[limits]\nmax_builders = 3\n")
    with pytest.raises((UsageError, SettingsError)):
        set_value(root, name, text)
    assert (root / "agent-farm.toml").read_text() == "[limits]\nmax_builders = 3\n"


def test_other_keys_and_comment_lines_stay(root: Path) -> None:
    write(root, "# ours\n[limits]\n# how many\nmax_builders = 3\n")
    set_value(root, "spawn.base", "develop")
    text = (root / "agent-farm.toml").read_text()
    assert "# ours\n" in text
    assert "# how many\n" in text
    settings = load_settings(root, {})
    assert settings.number("limits.max_builders") == 3
    assert settings.text("spawn.base") == "develop"


def test_setting_twice_does_not_repeat_comments(root: Path) -> None:
    write(root, "# ours\n")
    for base in ("a", "b", "c"):
        set_value(root, "spawn.base", base)
    assert (root / "agent-farm.toml").read_text().count("# ours") == 1


def test_a_damaged_file_is_not_overwritten(root: Path) -> None:
    write(root, "[spawn\n")
    with pytest.raises(SettingsError):
        set_value(root, "spawn.base", "develop")
    assert (root / "agent-farm.toml").read_text() == "[spawn\n"


@pytest.mark.parametrize("name", ["spawn.runtme", "spawn", "runtimes.codex.comand", "runtimes.codex", ""])
def test_an_unknown_name_names_the_nearest(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_key(name)
    if name:
        assert "Did you mean " in str(caught.value.why)


def test_an_unknown_table_is_refused_even_when_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "agent-farm.toml").write_text("[spwan]\n")
    with pytest.raises(SettingsError, match="unknown key spwan") as refused:
        load_settings(tmp_path, {})
    assert refused.value.why == "Did you mean spawn?"


def test_a_target_that_nobody_knows_is_refused(root: Path) -> None:
    write(root, '[notify]\nto = ["desktop", "tmux", "https://example.com/hook?key=1"]\n')
    assert load_settings(root, {}).values["notify.to"] == (
        "desktop",
        "tmux",
        "https://example.com/hook?key=1",
    )
    for wrong in ("pager", "file:///etc/passwd", "https://", "http://exa mple"):
        write(root, f'[notify]\nto = ["{wrong}"]\n')
        with pytest.raises(SettingsError, match="contains"):
            load_settings(root, {})
