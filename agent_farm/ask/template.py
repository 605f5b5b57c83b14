"""The prompt: the user's template, which starts as a copy of the packaged one."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent_farm.ask.config_file import ConfigManager
from agent_farm.disk import cannot_write, make_directory, replace_file
from agent_farm.errors import AgentFarmError, UsageError

TEMPLATE_NAME = "prompt_template.md"
PLACEHOLDERS = ("${question}", "${sourcesList}")
_PLACEHOLDER = re.compile("|".join(map(re.escape, (*PLACEHOLDERS, "${sourcePaths}"))))


class InvalidTemplate(AgentFarmError):
    code = "invalid-template"


def default_template() -> str:
    return _decoded(Path(__file__).with_name("default_prompt_template.md").read_bytes())


def load_template(config: ConfigManager, narrate: Callable[[str], None]) -> str:
    """The valid template beside config.json, copied from the packaged one if missing."""
    path = config.directory / TEMPLATE_NAME
    text = _read(path)
    if text is None:
        text = default_template()
        try:
            _create(config, path, text)
        except AgentFarmError as error:
            narrate(f"{path} cannot be created ({error.why}); the packaged template is used")
    require_placeholders(text, path)
    return text


def require_placeholders(text: str, path: Path | None = None) -> None:
    missing = [placeholder for placeholder in PLACEHOLDERS if placeholder not in text]
    if missing:
        raise InvalidTemplate(
            f"Invalid prompt template: missing required placeholder{'s' if len(missing) > 1 else ''} "
            + ", ".join(missing),
            why=f"in {path}" if path else None,
            hint=f"$EDITOR {path}" if path else None,
        )


def fill_template(template: str, *, question: str, sources_list: str, source_paths: str = "") -> bytes:
    """Fills all placeholders in one pass: what a question contains is never expanded."""
    values = {
        "${question}": question,
        "${sourcesList}": sources_list,
        "${sourcePaths}": source_paths,
    }
    filled = _PLACEHOLDER.sub(lambda match: values[match.group()], template)
    return filled.encode("utf-8", "surrogateescape")


def require_question(question: str) -> None:
    if not question.strip():
        raise UsageError("The question is empty", hint='af ask -s NAME "question"')
    if "\0" in question:
        raise UsageError("The question contains a NUL character")
    with suppress(UnicodeEncodeError):
        question.encode("utf-8", "surrogateescape")
        return
    raise UsageError("The question is not valid Unicode")


def _read(path: Path) -> str | None:
    try:
        return _decoded(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _create(config: ConfigManager, path: Path, text: str) -> None:
    make_directory(config.directory)
    try:
        with config.lock():
            if not path.exists():
                replace_file(path, text, mode=0o644)
    except OSError as error:
        raise cannot_write(path, error) from error


def _decoded(data: bytes) -> str:
    """Decodes so that every byte survives encoding it again."""
    return data.decode("utf-8", "surrogateescape")
