"""Every key that a settings file may have, with the values it takes."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from agent_farm.errors import AgentFarmError

PERMISSIONS = ("ask", "edit", "all")
STRATEGIES = ("merge", "squash", "rebase", "ff")
AUTO = ("idle", "never")


class SettingsError(AgentFarmError):
    code = "settings"


class Key(Struct, frozen=True):
    """One setting: its TOML name, its values, and one line for `docs/settings.md`.

    With `asks`, a repository's value runs, copies, passes or widens something and needs its user's consent.
    """

    name: str
    kind: type
    default: Any
    text: str
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = 1_000_000
    env: str | None = None
    asks: bool = False


TOLD_HERE = ("desktop", "bell", "tmux")  # `pane/tell.py` knows how
NOTIFIED = ("waiting", "exited", "failed")
BUILDS = (
    "make", "ninja", "cmake --build", "meson compile", "bazel build", "bazel test", "mvn", "gradle",
    "cargo build", "cargo check", "cargo clippy", "cargo test", "go build", "go test", "go vet",
    "npm ci", "npm install", "npm test", "npm run build", "npm run test",
    "pnpm install", "pnpm test", "pnpm build", "yarn install", "yarn test", "yarn build",
)  # fmt: skip
KEYS = (
    Key("spawn.runtime", str, None, "Runtime of builders; default: the first usable one"),
    Key("spawn.model", str, None, "Model for the default runtime; default: that runtime's own"),
    Key("spawn.base", str, None, "Revision that builders start from; default: HEAD of the current checkout"),
    Key("spawn.fetch", bool, False, "Fetch the base's remote first, as --fetch does"),
    Key(
        "spawn.sparse",
        list,
        (),
        "Directories that builders check out, with those the task names; default: all",
    ),
    Key(
        "spawn.names",
        str,
        "hash",
        "How the id of a task is made: from its hash, or from its first words",
        choices=("hash", "words"),
    ),
    Key(
        "spawn.on",
        str,
        None,
        "Machine of the fleet that builders start on, or fleet for any; default: this one",
    ),
    Key(
        "spawn.permissions",
        str,
        "edit",
        "What a builder may do without asking",
        choices=PERMISSIONS,
        asks=True,
    ),
    Key(
        "fleet.restart",
        str,
        "ask",
        "What happens to the builders of a lost machine: `auto` restarts them on another one, `ask` waits"
        " for you",
        choices=("ask", "auto"),
    ),
    Key(
        "fleet.lost_seconds",
        int,
        45,
        "Seconds without an answer after which a machine has lost its builders",
        minimum=5,
    ),
    Key(
        "fleet.fetch_megabytes",
        int,
        1024,
        "Maximum size of one fetch from a machine, in megabytes",
        minimum=1,
    ),
    Key(
        "worktree.copy",
        list,
        (),
        "Ignored files to copy into a new worktree, with .gitignore patterns",
        asks=True,
    ),
    Key(
        "worktree.link",
        list,
        (),
        "Ignored files and directories that builders share with this checkout through links",
        asks=True,
    ),
    Key("worktree.submodules", bool, False, "Fill submodules in a new worktree before its setup", asks=True),
    Key(
        "worktree.setup",
        str,
        None,
        "Command run by sh in a new worktree before the runtime starts",
        asks=True,
    ),
    Key("worktree.carry", list, (), "Ignored output to bring into a new worktree as it is here", asks=True),
    Key(
        "worktree.uncommitted",
        bool,
        False,
        "Copy uncommitted changes of the current checkout to a new builder",
    ),
    Key("ports.per_builder", int, 10, "Ports reserved for each builder; AF_PORT is the first", maximum=1000),
    Key("env.pass", list, (), "Further environment variables that builders may see", asks=True),
    Key(
        "tmux.socket",
        str,
        None,
        "tmux server: a name, or a path with a slash",
        env="AF_TMUX_SOCKET",
        asks=True,
    ),
    Key("merge.strategy", str, "merge", "How `af merge` lands commits", choices=STRATEGIES),
    Key(
        "merge.check",
        str,
        None,
        "Command run by sh on the result of `af merge` before it lands; default: the checks of [check]",
        asks=True,
    ),
    Key(
        "check.command",
        str,
        None,
        "Command run by sh on work merged into its target, in a clean worktree; if it passes, the work is"
        " proven",
        asks=True,
    ),
    Key("check.seconds", int, 1800, "Time limit of each check", minimum=1, maximum=86_400),
    Key("check.auto", str, "never", "When checks run automatically: when a turn ends, or never", AUTO),
    Key(
        "landing.checks_at_once",
        int,
        0,
        "Number of checks that `af land` runs at once; 0: two with four or more processors, else one",
        maximum=8,
    ),
    Key("limits.max_builders", int, 0, "Maximum number of running builders; 0: no limit"),
    Key(
        "limits.stop_idle", bool, False, "Stop a builder whose turn has ended when another one waits for room"
    ),
    Key(
        "limits.builds",
        int,
        0,
        "Number of builds, setups and checks that run at once on this machine; 0: no limit",
        maximum=1000,
    ),
    Key(
        "limits.build_commands",
        list,
        BUILDS,
        "Commands that count as builds: programs, with the words that must follow",
    ),
    Key(
        "limits.build_memory",
        int,
        0,
        "Megabytes that a build is expected to need; one that would not fit beside the others waits",
    ),
    Key(
        "limits.build_jobs",
        int,
        0,
        "Jobs that all makes and cargos share beyond the first one of each; 0: none are shared",
        maximum=1000,
    ),
    Key(
        "notify.command", str, None, "Command run by sh when a builder enters a state of notify.on", asks=True
    ),
    Key(
        "notify.to",
        list,
        (),
        f"Where else to send a notification: {', '.join(TOLD_HERE)}, or an http(s) address that gets JSON",
        asks=True,
    ),
    Key(
        "notify.on",
        list,
        NOTIFIED,
        "States that trigger notify.command and notify.to",
        choices=(*NOTIFIED, "limited", "idle"),
    ),
    Key(
        "pool.size",
        int,
        0,
        "Number of worktrees kept ready for the next spawns; 0: as pool.auto says",
        maximum=100,
    ),
    Key("pool.auto", bool, True, "Keep two worktrees ready if a checkout takes more than 0.3 s"),
    Key(
        "forge.command",
        str,
        None,
        "Program for issues and pull requests; default: the one that fits the remote, or is installed",
        choices=("gh", "glab"),
    ),
    Key(
        "sessions.on",
        str,
        None,
        "Machine of the fleet that runs headless sessions, or fleet for any; default: this one",
    ),
    Key(
        "sessions.at_once",
        int,
        4,
        "Number of headless sessions at a time on a machine reached by ssh",
        minimum=1,
    ),
    Key("sessions.keep_days", int, 90, "Days to keep records of ended sessions and schedules; 0: no limit"),
    Key("sessions.keep_number", int, 5000, "Number of records to keep per butler or schedule; 0: no limit"),
    Key("serve.port", int, 0, "Fixed port that `af serve` forwards to a builder", maximum=65535),
    Key("server.enabled", bool, True, "Builders get the farm's MCP server", env="AF_SERVER"),
    Key(
        "server.idle_seconds",
        int,
        900,
        "Seconds without requests, builders, sessions or schedules after which the server ends; 0: never",
    ),
    Key("server.port", int, 0, "Port of the farm's server; 0 chooses one and keeps it", maximum=65535),
)
RUNTIME_KEYS = (
    Key("command", str, None, "Program to run instead of the runtime's own", asks=True),
    Key("args", list, (), "Further arguments", asks=True),
    Key("model", str, None, "Model for this runtime"),
    Key("permissions", str, None, "Permissions for this runtime", choices=PERMISSIONS, asks=True),
    Key(
        "unlock",
        list,
        (),
        "What its builders use of your own configuration; for claude-code: settings, mcp",
        asks=True,
    ),
)
CHECK_KEYS = (Key("command", str, None, "Command of a further check with this name", asks=True),)
# Tables of tables: one for each runtime, one for each named check.
NAMED_TABLES = {"runtimes": RUNTIME_KEYS, "check": CHECK_KEYS}


def known_key(name: str) -> Key | None:
    """The key of that name; `runtimes.NAME.KEY` and `check.NAME.KEY` exist for every name."""
    table, _, last = name.rpartition(".")
    first, _, own = table.partition(".")
    keys = NAMED_TABLES[first] if own and first in NAMED_TABLES else KEYS
    wanted = last if keys is not KEYS else name
    return next((key for key in keys if key.name == wanted), None)


def known_names() -> list[str]:
    """The names of all keys, as the documents show them."""
    named = (f"{table}.NAME.{key.name}" for table, keys in NAMED_TABLES.items() for key in keys)
    return [*(key.name for key in KEYS), *named]
