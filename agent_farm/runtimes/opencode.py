"""opencode, in a pane and headless."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from agent_farm.disk import make_directory, replace_file
from agent_farm.launch import Launch, LaunchFile
from agent_farm.runtimes.base import (
    HeadlessOrder,
    InteractiveOrder,
    Permissions,
    RuntimeAdapter,
    ScreenPatterns,
)
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.git_identity import identity_environment
from agent_farm.runtimes.mcp_config import TOOL_SECONDS, McpServer, as_servers
from agent_farm.runtimes.opencode_lock import foreign_servers
from agent_farm.runtimes.opencode_plugin import report_plugin
from agent_farm.runtimes.plain_text import INPUT_LINE
from agent_farm.runtimes.prompts import argument_for
from agent_farm.runtimes.result import RuntimeResult
from agent_farm.runtimes.skills import skill_commands
from agent_farm.runtimes.worktree_files import directories_between

# the vendor in `vendor/model` -> the variables it reads
PROVIDERS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
# its input box: the draft or nothing, an empty line, its agent's name, the lower edge; beside it a side bar
_INPUT_BOX = r"^ *┃(?:  %s)?(?: {12,}\S.*)? *\n *┃(?: {12,}\S.*)? *\n *┃ +(?:Build|Plan)\b.*\n *╹▀▀"
INTERACTIVE: Mapping[Permissions, Mapping[str, object]] = {
    "ask": {"edit": "ask", "bash": "ask", "webfetch": "ask", "external_directory": "ask"},
    "edit": {"edit": "allow", "bash": "ask", "webfetch": "ask", "external_directory": "ask"},
    "all": {"*": "allow"},
}
HEADLESS: Mapping[Permissions, Mapping[str, object]] = {
    "ask": {"edit": "deny", "bash": "deny", "webfetch": "deny", "external_directory": "deny"},
    "edit": {
        "edit": "allow",
        "bash": "deny",
        "webfetch": "deny",
        "external_directory": "deny",
    },
    "all": {"*": "allow"},
}


class OpencodeAdapter(RuntimeAdapter):
    name = "opencode"
    title = "opencode"
    binary_name = "opencode"
    install_hint = "npm install -g opencode-ai"
    oldest = "1.18.21"
    key_names = ("OPENCODE_API_KEY",)
    states: ClassVar[Mapping[str, str]] = {
        "chat.message": "working",
        "session.status:busy": "working",
        "session.status:retry": "waiting",
        "permission.asked": "waiting",
        "question.asked": "waiting",
        "permission.replied": "working",
        "question.replied": "working",
        "session.error": "waiting",
        "session.idle": "idle",
    }
    ready_states: ClassVar[Mapping[str, str]] = {"ready": "idle"}
    submit_event = "chat.message"
    unsure_events = ("permission.asked", "question.asked")
    notices_dead_mcp = False
    own_words = INPUT_LINE
    screen = ScreenPatterns(
        ready=_INPUT_BOX % r"(?:Ask anything.*?)?",
        draft=_INPUT_BOX % r"(?!Ask anything| )\S.*?",
        dialog=r"Permission required|Allow once",
        working=r"esc (?:again )?(?:to )?interrupt",
    )

    def keys_for(self, model: str | None) -> tuple[str, ...]:
        """The keys of the model's vendor, named before the slash; without a model only its own."""
        vendor = (model or "").partition("/")[0]
        return (*self.key_names, *PROVIDERS.get(vendor, ()))

    @property
    def every_key(self) -> tuple[str, ...]:
        return (*self.key_names, *(name for names in PROVIDERS.values() for name in names))

    def login_problem(self, env: Mapping[str, str], model: str | None = None) -> str | None:
        """Without either it would take a free model that its vendor hosts, and send the code there."""
        vendor = (model or "").partition("/")[0]
        logins = _logins(env)
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

    def permission_words(self, permissions: Permissions) -> str:
        return f"`{json.dumps(INTERACTIVE[permissions])}`"

    def headless_permission_words(self, permissions: Permissions) -> str:
        skills = ", `bash` allowed for each script of `skills/`" if permissions == "edit" else ""
        return f"`{json.dumps(HEADLESS[permissions])}`{skills}"

    def interactive(self, order: InteractiveOrder) -> Launch:
        home, scratch = order.run_directory / "opencode", order.run_directory / "scratch"
        argv = [*(self.find_command(order.env, order.command) or order.command or (self.binary_name,))]
        if order.model:
            argv += ["--model", order.model]
        if order.resume and order.conversation_id:
            argv += ["--session", order.conversation_id]
        argv += order.extra_args
        resumed = None
        if order.resume and order.conversation_id and order.prompt_file:
            resumed = (order.conversation_id, order.prompt_file) if order.prompt is not None else None
        elif order.prompt is not None:
            argv.append("--prompt=" + argument_for(order, self.own_words, prefix="--prompt="))
        plugin = home / "report.js"
        role = home / "role.md" if order.role_text else None
        config = settings(order.mcp_server, INTERACTIVE[order.permissions], role, order.worktree, order.cwd)
        config["plugin"] = [plugin.as_uri()]
        files = [
            LaunchFile(home / "opencode.json", json.dumps(config)),
            LaunchFile(
                plugin,
                report_plugin(order.hook_argv("-"), prompted=order.prompt is not None, resumed=resumed),
            ),
            *config_home_files(home),
            LaunchFile(scratch / ".keep", ""),
        ]
        if role:
            files.append(LaunchFile(role, order.role_text or ""))
        env = environment(order.env, home, order.mcp_server, order.cwd)
        env["BUN_TMPDIR"] = str(scratch)  # each start leaves 19 MB there; TMPDIR stays its commands' own
        return Launch(tuple(argv), order.cwd, env, tuple(files), scratch)

    async def run_headless(self, order: HeadlessOrder) -> RuntimeResult:
        from agent_farm.runtimes.opencode_headless import run_opencode

        home = order.scratch / "opencode"
        make_directory(order.scratch / "tmp")  # each run leaves megabytes in TMPDIR
        make_directory(home)
        role = home / "role.md" if order.system_prompt else None
        if role:
            replace_file(role, order.system_prompt)
        config = settings(order.mcp_server, _headless_permissions(order), role, order.cwd, order.cwd)
        replace_file(home / "opencode.json", json.dumps(config))
        for file in config_home_files(home):
            make_directory(file.path.parent)
            replace_file(file.path, file.content)
        env = environment(order.env, home, order.mcp_server, order.cwd)
        return await run_opencode(order, {**env, "TMPDIR": str(order.scratch / "tmp")})

    def build_config_file(
        self, mcp_servers: Mapping[str, McpServer | Mapping[str, object]], tmp_dir: Path
    ) -> Path:
        path = tmp_dir / "opencode.json"
        form = {"mcp": {server.name: server_form(server) for server in as_servers(mcp_servers)}}
        replace_file(path, json.dumps(form, indent=2))
        return path


def _headless_permissions(order: HeadlessOrder) -> Mapping[str, object]:
    words = HEADLESS[order.permissions]
    if order.permissions == "all":
        return words
    top, bounds = _top(order.cwd), order.bounds
    words = {
        **words,
        "read": {"*": "allow", **_each(top, bounds.hides, "deny")},
        "external_directory": {"*": "deny", **{f"{place}/*": "allow" for place in bounds.reads}},
    }
    if order.permissions == "ask":
        return words
    if bounds.own:  # it takes the whole repository around it for its own
        edit = {"*": "deny", **_each(top, (order.cwd,), "allow"), **_each(top, bounds.keeps, "deny")}
        words = {**words, "edit": edit}
    allowed = [
        form for command in skill_commands(order.skills_home, order.cwd) for form in (command, f"{command} *")
    ]
    return {**words, "bash": {"*": "deny", **dict.fromkeys(allowed, "allow")}}


def _top(cwd: Path) -> Path:
    """What its rules name files from: the repository that it starts in."""
    return next((place for place in (cwd, *cwd.parents) if (place / ".git").exists()), cwd)


def _each(top: Path, places: Sequence[Path], verdict: str) -> dict[str, str]:
    """Of the rules that match, the last one holds."""
    names = [os.path.relpath(place, top) for place in places]
    return {pattern: verdict for name in names for pattern in (name, f"{name}/*" if name != "." else "*")}


def _logins(env: Mapping[str, str]) -> frozenset[str]:
    """The vendors that its own login file names."""
    file = Path(env.get("HOME", os.sep)) / ".local/share/opencode/auth.json"
    try:
        return frozenset(json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return frozenset()


def settings(
    server: McpServer | None,
    permission: Mapping[str, object],
    role: Path | None,
    top: Path,
    cwd: Path,
) -> dict[str, Any]:
    """The only configuration it reads; the project's instructions are named, since its own search is off."""
    instructions = [str(path) for path in project_instructions(top, cwd)]
    return {
        "$schema": "https://opencode.ai/config.json",
        "share": "disabled",
        "autoupdate": False,
        "permission": permission,
        "instructions": [*([str(role)] if role else []), *instructions],
        "mcp": {server.name: server_form(server)} if server else {},
        # for calls alone: the server's own `timeout` would hold up a start, too
        "experimental": {"mcp_timeout": TOOL_SECONDS * 1000},
    }


def project_instructions(top: Path, cwd: Path) -> list[Path]:
    """AGENTS.md of each directory down to `cwd`, or CLAUDE.md where there is none."""
    found = []
    for directory in directories_between(top, cwd):
        names = (directory / "AGENTS.md", directory / "CLAUDE.md")
        found += [next(path for path in names if path.is_file())] if any(p.is_file() for p in names) else []
    return found[::-1]


def environment(env: Mapping[str, str], home: Path, server: McpServer | None, cwd: Path) -> dict[str, str]:
    """These together keep user and project settings out; its login, in the data directory, stays usable."""
    return {
        **env,
        **identity_environment(cwd, env),  # git of its commands looks into the empty XDG_CONFIG_HOME, too
        "OPENCODE_CONFIG": str(home / "opencode.json"),
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "XDG_CONFIG_HOME": str(home / "config"),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_CLAUDE_CODE": "1",  # it would read the user's ~/.claude
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        # read last of all, so it can switch off what ~/.opencode configures
        "OPENCODE_CONFIG_CONTENT": json.dumps({"mcp": foreign_servers(Path(env.get("HOME", os.sep)))}),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        **(server.environment() if server else {}),
    }


def config_home_files(home: Path) -> tuple[LaunchFile, ...]:
    """A configuration home in which its plugin library looks installed: it would fetch it from npm first."""
    directory = home / "config" / "opencode"
    library = {"dependencies": {"@opencode-ai/plugin": "*"}}
    return (
        LaunchFile(directory / "package.json", json.dumps(library)),
        LaunchFile(directory / "package-lock.json", json.dumps({"packages": {"": library}})),
        LaunchFile(directory / "node_modules" / ".keep", ""),
    )


def server_form(server: McpServer) -> dict[str, object]:
    form: dict[str, object] = {"type": "remote", "url": server.url, "enabled": True, "oauth": False}
    if server.token:
        form["headers"] = {"Authorization": f"Bearer {{env:{MCP_TOKEN}}}"}
    return form
