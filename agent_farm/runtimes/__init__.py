"""AI coding CLIs as runtimes: what each one needs to be started, locked, followed and resumed.

`get_adapter(name)` is the way in. One literal table, no discovery; an adapter's module is imported only
when it is asked for, so that `af --help` pays for none of them. So it is with the classes named here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from agent_farm.errors import AgentFarmError
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
    "claude-code": ("agent_farm.runtimes.claude_code", "ClaudeCodeAdapter"),
    "codex": ("agent_farm.runtimes.codex", "CodexAdapter"),
    "gemini": ("agent_farm.runtimes.gemini", "GeminiAdapter"),
    "copilot": ("agent_farm.runtimes.copilot", "CopilotAdapter"),
    "opencode": ("agent_farm.runtimes.opencode", "OpencodeAdapter"),
    "demo": ("agent_farm.runtimes.demo", "DemoAdapter"),
}


def adapter_names(root: Path | None = None) -> tuple[str, ...]:
    """The shipped runtimes, then those that the repository at `root` declares in agent_runtime.json."""
    return (*ADAPTERS, *(name for name in _declared(root) if name not in ADAPTERS))


def get_adapter(name: str, root: Path | None = None) -> RuntimeAdapter:
    """A new adapter; ValueError listing what exists when there is none of that name, or what hides it."""
    if name in ADAPTERS:
        return _load(*ADAPTERS[name])
    if name in _declared(root):
        from agent_farm.runtimes.external import ExternalAdapter

        assert root is not None
        return ExternalAdapter.declared(root, name)
    if problem := _problem(root):
        raise problem
    raise ValueError(f"Unknown runtime {name!r}. Available: {', '.join(adapter_names(root))}")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def _load(module: str, class_name: str) -> RuntimeAdapter:
    from importlib import import_module

    adapter_class: type[RuntimeAdapter] = getattr(import_module(module), class_name)
    return adapter_class()


def _declared(root: Path | None) -> tuple[str, ...]:
    if root is None or not (root / "agent_runtime.json").exists():
        return ()
    from agent_farm.runtimes.external_config import declared_runtimes

    return () if _problem(root) else tuple(declared_runtimes(root))


def _problem(root: Path | None) -> AgentFarmError | None:
    if root is None or not (root / "agent_runtime.json").exists():
        return None
    from agent_farm.runtimes.external_config import runtime_file_problem

    return runtime_file_problem(root)
