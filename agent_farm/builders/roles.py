"""Which file a builder's system prompt is read from."""

from __future__ import annotations

from pathlib import Path

from agent_farm.builders.config import BuilderType
from agent_farm.errors import UsageError
from agent_farm.inside import NotReadable, read_plain, require_inside

PACKAGED_ROLE = Path(__file__).parent.parent / "scaffold/codev/roles/builder.md"


def choose_role(
    root: Path,
    type: BuilderType,
    *,
    protocol: str | None = None,
    given: Path | None = None,
    no_role: bool = False,
) -> Path | None:
    """--role, then the protocol's own role, then the farm's builder role, then the packaged one."""
    if given is not None and no_role:
        raise UsageError("Flags are mutually exclusive: --role, --no-role", hint="af spawn --help")
    if no_role:
        return None
    if given is not None:
        return given
    if type == "shell":
        return None
    candidates = [root / "codev/roles/builder.md", PACKAGED_ROLE]
    if protocol is not None:
        candidates.insert(0, root / "codev/protocols" / protocol / "role.md")
    for path in candidates[:-1]:
        require_inside(root, path)  # its text becomes a system prompt
    return next(path for path in candidates if path.is_file())


def load_role(path: Path) -> str:
    try:
        text = read_plain(path).decode()
    except FileNotFoundError:
        raise UsageError(f"No role file {path}", hint="af spawn --no-role …") from None
    except (NotReadable, UnicodeDecodeError) as error:
        why = error.why if isinstance(error, NotReadable) else str(error)
        raise UsageError(f"Cannot read the role {path}", why=why) from error
    if "\0" in text:
        raise UsageError(f"The role {path} contains a NUL byte", why="It is not a text file.")
    return text
