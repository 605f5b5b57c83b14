"""AI coding CLIs as runtimes: how each one is started, locked, followed and resumed.

Use `get_adapter(name)`. There is one literal table and no discovery; an adapter's module is only imported
when the adapter is asked for, so `af --help` imports none. The classes named below are loaded the same way.
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

# name -> (module, class). A default is looked for in this order; demo is never the default.
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
    except AgentFarmError:  # reported where one of them is needed
        declared = ()
    return (*ADAPTERS, *(name for name in declared if name not in ADAPTERS))


def get_adapter(name: str, root: Path | None = None) -> RuntimeAdapter:
    """A new adapter; if there is none, ValueError with the names that exist, or what is wrong."""
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
    """The credentials for all AI providers: a CLI gets those for its own, and no others."""
    return frozenset(key for name in ADAPTERS for key in get_adapter(name).cli.keys)


def vendor_variables(environ: Iterable[str]) -> set[str]:
    """Those names that a shipped CLI may read, however it is started."""
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
