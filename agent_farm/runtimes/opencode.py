"""opencode, in a pane and headless."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_farm.paths import DOOR
from agent_farm.runtimes.cli import Ask, Cli, Environment, Hooks, Permissions, Screen, Start, Words
from agent_farm.runtimes.engine import CliAdapter
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.foreign import directories_between, load_json, table
from agent_farm.runtimes.mcp_config import TOOL_SECONDS, McpServer, bearer_header
from agent_farm.runtimes.opencode_config import overlay, referenced_variables
from agent_farm.runtimes.parsers import parser_in
from agent_farm.runtimes.skills import skill_commands
from agent_farm.runtimes.worktree_facts import top_of

# the provider in `provider/model` -> the variables that opencode reads for it
PROVIDERS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
_ASKED = ("bash", "webfetch", "external_directory")
_OFF = {"type": "remote", "url": "http://localhost:1/mcp", "enabled": False}
# its input box: the draft or nothing, an empty line, the agent's name, the lower edge; a side bar to its
# right
_INPUT_BOX = r"^ *┃(?:  %s)?(?: {12,}\S.*)? *\n *┃(?: {12,}\S.*)? *\n *┃ +(?:Build|Plan)\b.*\n *╹▀▀"


def _pick_keys(env: Environment, model: str | None) -> tuple[str, ...]:
    """The keys for the model's provider, named before the slash; without a model, only opencode's own."""
    return ("OPENCODE_API_KEY", *PROVIDERS.get(_vendor(model), ()))


def _login(env: Environment, model: str | None) -> str | None:
    """Without login or model it would use a free model that opencode hosts, and send the code there."""
    vendor, logins = _vendor(model), _logins(env)
    if not model:
        if logins or env.get("OPENCODE_API_KEY"):
            return None
        return (
            "opencode has no login, and no model is named: run opencode auth login, or set a key and "
            "name the model (af config set runtimes.opencode.model openai/…)"
        )
    keys = PROVIDERS.get(vendor, ())
    if not keys or vendor in logins or any(env.get(name) for name in keys if name.endswith("_KEY")):
        return None
    return f"opencode has no login for {vendor}: run opencode auth login, or set {keys[0]}"


def _vendor(model: str | None) -> str:
    return (model or "").partition("/")[0]


def _logins(env: Environment) -> frozenset[str]:
    """The providers named in its own login file."""
    return frozenset(load_json(Path(env.get("HOME", os.sep)) / ".local/share/opencode/auth.json"))


def _environment(start: Start) -> dict[str, str]:
    """Together, these keep user and project settings out; its login, in the data directory, stays usable."""
    users = Path(start.env.get("HOME", os.sep)) / ".opencode"
    servers = [
        name for file in ("opencode.json", "opencode.jsonc") for name in table(load_json(users / file), "mcp")
    ]
    return {
        "OPENCODE_CONFIG": str(_config_home(start) / "opencode.json"),
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "XDG_CONFIG_HOME": str(_config_home(start) / "config"),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_CLAUDE_CODE": "1",  # otherwise it reads the user's ~/.claude
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        # read last, so it can switch off what ~/.opencode configures
        "OPENCODE_CONFIG_CONTENT": json.dumps({"mcp": dict.fromkeys(servers, _OFF)}),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }


def _config_home(start: Start) -> Path:
    return start.place / "opencode"


def _config(servers: tuple[McpServer, ...]) -> dict[str, object]:
    def form(server: McpServer) -> dict[str, object]:
        header = bearer_header(server, variable=f"{{env:{MCP_TOKEN}}}")
        return {"type": "remote", "url": server.url, "enabled": True, "oauth": False, **header}

    return {"mcp": {server.name: form(server) for server in servers}}


def _files(start: Start) -> dict[Path, str]:
    home = _config_home(start)
    files = dict(_plugin_library(home / "config" / "opencode"))
    if start.role:
        files[home / "role.md"] = start.role
    settings = _settings(start)
    if start.in_pane:
        plugin = home / "report.js"
        settings["plugin"] = [plugin.as_uri()]
        files[plugin] = Path(__file__).with_name("opencode_plugin.js").read_text(encoding="utf-8")
        files[home / "report.json"] = json.dumps(_plugin_values(start))
    return {home / "opencode.json": json.dumps(settings), **files}


def _plugin_values(start: Start) -> dict[str, object]:
    """`--prompt` has no effect when a session is resumed, so the plugin sends the message."""
    resumed = None
    if start.resume and start.prompt is not None and start.prompt_file:
        resumed = {"session": start.conversation_id, "file": str(start.prompt_file)}
    prompted, door = start.prompt is not None, str(start.place / DOOR)
    return {"argv": start.report, "resumed": resumed, "prompted": prompted, "door": door}


def _settings(start: Start) -> dict[str, Any]:
    """The only configuration it reads; it names the project's instructions, because its own search is off."""
    role = [str(_config_home(start) / "role.md")] if start.role else []
    return {
        "$schema": "https://opencode.ai/config.json",
        "share": "disabled",
        "autoupdate": False,
        "permission": _pane_rules(start.permissions) if start.in_pane else _headless_rules(start),
        "instructions": [*role, *map(str, _project_instructions(start))],
        # only for calls: the server's own `timeout` would also delay a start
        "experimental": {"mcp_timeout": TOOL_SECONDS * 1000},
        **_config(start.servers),
    }


def _project_instructions(start: Start) -> list[Path]:
    """AGENTS.md in each directory down to `cwd`, or CLAUDE.md if there is none."""
    found = []
    for directory in directories_between(start.top, start.cwd):
        files = [directory / name for name in ("AGENTS.md", "CLAUDE.md") if (directory / name).is_file()]
        found += files[:1]
    return found[::-1]


def _plugin_library(directory: Path) -> Mapping[Path, str]:
    """A configuration home in which its plugin library looks installed: it fetches that otherwise."""
    library = {"dependencies": {"@opencode-ai/plugin": "*"}}
    return {
        directory / "package.json": json.dumps(library),
        directory / "package-lock.json": json.dumps({"packages": {"": library}}),
        directory / "node_modules" / ".keep": "",
    }


def _pane_rules(permissions: Permissions) -> dict[str, object]:
    if permissions == "all":
        return {"*": "allow"}
    return {"edit": "allow" if permissions == "edit" else "ask", **dict.fromkeys(_ASKED, "ask")}


def _headless_rules(start: Start) -> dict[str, object]:
    if start.permissions == "all":
        return {"*": "allow"}
    top, bounds = top_of(start.cwd), start.bounds  # its rules name files relative to the top
    rules: dict[str, object] = {
        "edit": "deny",
        **dict.fromkeys(_ASKED, "deny"),
        "read": {"*": "allow", **_each(top, bounds.hides, "deny")},
        "external_directory": {"*": "deny", **{f"{place}/*": "allow" for place in bounds.reads}},
    }
    if start.permissions == "ask":
        return rules
    rules["edit"] = "allow"
    if bounds.own:  # otherwise it may change the whole repository around it
        own = _each(top, (start.cwd,), "allow")
        rules["edit"] = {"*": "deny", **own, **_each(top, bounds.keeps, "deny")}
    commands = skill_commands(start.skills, start.cwd)
    allowed = [form for command in commands for form in (command, f"{command} *")]
    return {**rules, "bash": {"*": "deny", **dict.fromkeys(allowed, "allow")}}


def _each(top: Path, places: Sequence[Path], verdict: str) -> dict[str, str]:
    """Rules for these places; the last rule that matches applies."""
    names = [os.path.relpath(place, top) for place in places]
    return {pattern: verdict for name in names for pattern in (name, f"{name}/*" if name != "." else "*")}


HOOKS = Hooks(
    states={
        "chat.message": "working",
        "session.status:busy": "working",
        "session.status:retry": "waiting",
        "permission.asked": "waiting",
        "question.asked": "waiting",
        "permission.replied": "working",
        "question.replied": "working",
        "session.error": "waiting",
        "session.idle": "idle",
    },
    ready_states={"ready": "idle"},
    submitted="chat.message",
    unsure=("permission.asked", "question.asked"),
    kind=("subtype",),
    reason=("message",),
)

OPENCODE = Cli(
    name="opencode",
    title="opencode",
    binary="opencode",
    install="npm install -g opencode-ai",
    oldest="1.18.21",
    tried="1.18.33",
    last_major=1,  # version 2 does not load version 1 plugins, and one of ours reports the states
    keys=(
        "OPENCODE_API_KEY",
        *(name for names in PROVIDERS.values() for name in names if name.endswith("_KEY")),
    ),
    variables=tuple(name for names in PROVIDERS.values() for name in names if not name.endswith("_KEY")),
    pick_keys=_pick_keys,
    login=_login,
    pane="{model} {conversation} {extra} {prompt}",
    headless="run --format json {model} {conversation} {extra}",
    words=Words(resume=("--session", "{}"), prompts_on_resume=False),
    ask=Ask(
        command="opencode run --pure",
        chat="opencode --pure",
        env={
            "OPENCODE_CONFIG_CONTENT": "{opencode_config}",
            "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "TMPDIR": "{scratch}",  # each run leaves a library of several MB there
        },
        files={"opencode.json": "{}"},
        instructions=("opencode.json", "opencode.jsonc", "AGENTS.md", "CLAUDE.md", "CONTEXT.md"),
        variables=(
            *("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "AWS_*"),
            *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION"),
        ),
        placeholders={"opencode_config": overlay},
        more_variables=referenced_variables,
    ),
    config=_config,
    config_file="opencode.json",
    files=_files,
    environment=_environment,
    events=parser_in("opencode_events", "OpencodeEvents"),
    # each start leaves 19 MB; in a pane, TMPDIR stays as it is for its commands
    temporary={"pane": "BUN_TMPDIR", "headless": "TMPDIR"},
    hooks=HOOKS,
    screen=Screen(
        ready=_INPUT_BOX % r"(?:Ask anything.*?)?",
        draft=_INPUT_BOX % r"(?!Ask anything| )\S.*?",
        dialog=r"Permission required|Allow once",
        working=r"esc (?:again )?(?:to )?interrupt",
    ),
    limited=r"usage limit reached(?:.*?will reset in (?P<after>[^.]+))?|free usage exceeded",
    interrupt="Escape Escape",
    has_door=True,
    notices_dead_mcp=False,
    hides_git_identity=True,  # git also looks into the empty XDG_CONFIG_HOME
)


class OpencodeAdapter(CliAdapter):
    cli = OPENCODE
