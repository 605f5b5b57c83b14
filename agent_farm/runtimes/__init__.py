"""AI coding CLIs as runtimes: what each one needs to be started, locked, followed and resumed.

`get_adapter(name)` is the way in. One literal table, no discovery; an adapter's module is imported only
when it is asked for, so that `af --help` pays for none of them. So it is with the classes named here.
"""

from __future__ import annotations

from agent_farm.errors import AgentFarmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from agent_farm.runtimes.base import RuntimeAdapter as RuntimeAdapter
    from agent_farm.runtimes.claude_code import ClaudeCodeAdapter as ClaudeCodeAdapter
    from agent_farm.runtimes.codex import CodexAdapter as CodexAdapter
    from agent_farm.runtimes.external import ExternalAdapter as ExternalAdapter
    from agent_farm.runtimes.gemini import GeminiAdapter as GeminiAdapter
    from agent_farm.runtimes.result import RuntimeResult as RuntimeResult

__all__ = [
    "ADAPTERS",
    "ClaudeCodeAdapter",
    "CodexAdapter",
    "ExternalAdapter",
    "GeminiAdapter",
    "RuntimeAdapter",
    "RuntimeResult",
    "adapter_names",
    "get_adapter",
    "vendor_keys",
    "vendor_variables",
]

_HOMES = {
    "ClaudeCodeAdapter": "claude_code",
    "CodexAdapter": "codex",
    "ExternalAdapter": "external",
    "GeminiAdapter": "gemini",
    "RuntimeAdapter": "base",
    "RuntimeResult": "result",
}

# name -> (module, class); the order is the order in which a default is looked for, demo never being one
ADAPTERS = {
    "claude-code": ("claude_code", "ClaudeCodeAdapter"),
    "codex": ("codex", "CodexAdapter"),
    "gemini": ("gemini", "GeminiAdapter"),
    "copilot": ("copilot", "CopilotAdapter"),
    "opencode": ("opencode", "OpencodeAdapter"),
    "demo": ("demo", "DemoAdapter"),
}


def adapter_names(root: Path | None = None) -> tuple[str, ...]:
    """The shipped runtimes, then those that the repository at `root` declares in agent_runtime.json."""
    try:
        declared = tuple(_declared(root))
    except AgentFarmError:  # it is said where one of them is wanted
        declared = ()
    return (*ADAPTERS, *(name for name in declared if name not in ADAPTERS))


def get_adapter(name: str, root: Path | None = None) -> RuntimeAdapter:
    """A new adapter; ValueError listing what exists when there is none of that name, or what hides it."""
    if name in ADAPTERS:
        adapter: RuntimeAdapter = _load(*ADAPTERS[name])()
        return adapter
    if runtime := _declared(root).get(name):
        from agent_farm.runtimes.acp_config import AcpRuntime

        if isinstance(runtime, AgentFarmError):
            raise runtime
        kind = ("acp", "AcpAdapter") if isinstance(runtime, AcpRuntime) else ("external", "ExternalAdapter")
        declared: RuntimeAdapter = _load(*kind)(runtime)
        return declared
    raise ValueError(f"Unknown runtime {name!r}. Available: {', '.join(adapter_names(root))}")


def vendor_keys() -> frozenset[str]:
    """The credentials of all AI vendors: a CLI keeps its own and gets none of the others'."""
    return frozenset(key for name in ADAPTERS for key in get_adapter(name).cli.keys)


def vendor_variables(environ: Iterable[str]) -> set[str]:
    """Of these names the ones that a shipped CLI may read, in whichever way it is started."""
    names, families = set[str](), list[str]()
    for name in ADAPTERS:
        cli = get_adapter(name).cli
        for variable in (*cli.every_variable, *(cli.ask.variables if cli.ask else ())):
            families.append(variable[:-1]) if variable.endswith("*") else names.add(variable)
    return {name for name in environ if name in names or name.startswith(tuple(families))}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _load(_HOMES[name], name)


def _load(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)


def _declared(root: Path | None) -> Mapping[str, Any]:
    if root is None or not (root / "agent_runtime.json").exists():
        return {}
    from agent_farm.runtimes.external_config import declared_runtimes

    return declared_runtimes(root)
