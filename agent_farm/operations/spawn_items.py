"""`--spec`: specs and task lists in other tools' formats, as the work of one builder or one item of them.

Every format is read into a `Spec`: `items` work the same for all, `prompt` is specific to the format.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders import ids
from agent_farm.builders.check_list import Item, is_check_list, open_items, read_source, written_source
from agent_farm.errors import AgentFarmError, NotFound, UsageError, meant
from agent_farm.farm.farm import Farm
from agent_farm.forge.beads import bead, claim, give_back, giving_back, ready_beads
from agent_farm.forge.issues import Issue
from agent_farm.launch import as_command
from agent_farm.operations.operation import Context
from agent_farm.operations.spawn_request import ItemMode, Spawn
from agent_farm.operations.spawn_work import Work, inside_checkout, require_own, uncommitted

_LARGEST = 1_000_000
_TASKS = "tasks.md"
_BEADS = ".beads"


class _Form(Struct, frozen=True):
    """A folder has this form if it contains `sign`; `reads` names what describes the work, as far as it
    exists. With `and_all`, all other files are read too: teams have schemas of their own."""

    name: str
    sign: str
    reads: tuple[str, ...]
    and_all: bool = False

    def names(self, there: Sequence[str]) -> list[str]:
        others = [one for one in there if one != _TASKS and not one.startswith(".")] if self.and_all else ()
        return list(dict.fromkeys((*self.reads, *others)))


_FORMS = (
    _Form("spec-kit", "spec.md", ("spec.md", "plan.md", "research.md", "data-model.md", "quickstart.md")),
    _Form("Kiro", "requirements.md", ("requirements.md", "design.md")),
    _Form("Kiro", "bugfix.md", ("bugfix.md", "design.md")),
    _Form("OpenSpec", "proposal.md", ("proposal.md", "design.md", "specs"), and_all=True),
    _Form("OpenSpec", ".openspec.yaml", (), and_all=True),
)


class Spec(Struct, frozen=True):
    """`tasks` is the file or tracker with the items, `whole` the prompt for everything that is open."""

    name: str
    tasks: str
    items: tuple[Item, ...]
    reads: tuple[str, ...]
    whole: str | None
    prompt: Callable[[Item], str]

    def item(self, key: str) -> Item:
        for item in self.items:
            if item.key.lower() == key.lower():
                return item
        keys = [item.key for item in self.items]
        why = meant(key, keys, f"Open items: {', '.join(keys[:20]) or 'none'}.")
        raise NotFound(f"{self.tasks} has no open item {key}", why=why)


def item_work(farm: Farm, mode: ItemMode, commit: str) -> Work:
    spec = read_spec(farm, mode.spec, commit, mode.item)
    if mode.item is None:
        if spec.whole is None:
            raise UsageError("--spec .beads requires --item", hint="af spawn --spec .beads --item bd-42")
        name = f"{spec.name}: the open tasks" if spec.items else spec.name
        return _work(spec, spec.name, spec.whole, name)
    item = spec.item(mode.item)
    one = _work(spec, f"{spec.name}-{item.key}", spec.prompt(item), f"{item.key} {item.title}")
    return replace(one, source=written_source(spec.tasks, item.key, item.title))


def _work(spec: Spec, name: str, prompt: str, title: str) -> Work:
    return Work("task", lambda: ids.slug_names(name), prompt, title, reads=spec.reads)


def read_spec(farm: Farm, place: str, commit: str, key: str | None = None) -> Spec:
    """Files are read as committed; issues of beads as they are now."""
    path = inside_checkout(farm, place, "--spec")
    if path == _BEADS:
        return _beads(farm, key)
    kinds = farm.repository.entry_kinds(commit, [path])
    if kinds[path] == "tree":
        return _folder(farm, path, commit)
    if kinds[path] != "blob":
        if (farm.repository.checkout / path).exists():
            raise uncommitted(path)
        raise NotFound(f"--spec: {place} is not in the repository", hint="git ls-files '*.md'")
    folder, name = posixpath.split(path)
    known = any(name == _TASKS or name in form.reads for form in _FORMS)
    if known and folder and _form(farm, folder, commit):
        return _folder(farm, folder, commit)
    return _list(farm, path, commit)


def _form(farm: Farm, folder: str, commit: str) -> _Form | None:
    kinds = farm.repository.entry_kinds(commit, [f"{folder}/{form.sign}" for form in _FORMS])
    return next((form for form in _FORMS if kinds[f"{folder}/{form.sign}"] == "blob"), None)


def _folder(farm: Farm, folder: str, commit: str) -> Spec:
    form = _form(farm, folder, commit)
    tasks = f"{folder}/{_TASKS}"
    there = farm.repository.list_directory(commit, folder) if form and form.and_all else []
    names = [f"{folder}/{name}" for name in (form.names(there) if form else ())]
    kinds = farm.repository.entry_kinds(commit, [tasks, *names])
    if form is None and kinds[tasks] != "blob":
        raise UsageError(
            f"{folder} is not a spec that af knows",
            why="spec-kit has spec.md, Kiro requirements.md, OpenSpec proposal.md, and any list tasks.md.",
        )
    reads = [name for name in names if kinds[name]]
    require_own(farm, commit, [tasks, *reads])
    items = open_items(_text(farm, tasks, commit)) if kinds[tasks] == "blob" else []
    told = f"Read {_and(reads)} first." if reads else ""
    whole = f"Implement what {folder} specifies. {told}".strip()
    if kinds[tasks] == "blob":
        whole += f" Its tasks are in {tasks}: do the open ones in order, and mark each when it is done."

    def prompt(item: Item) -> str:
        return _item_prompt(item, tasks, told)

    return Spec(posixpath.basename(folder), tasks, tuple(items), (tasks, *reads), whole, prompt)


def _list(farm: Farm, path: str, commit: str) -> Spec:
    require_own(farm, commit, [path])
    text = _text(farm, path, commit)
    if not is_check_list(text):
        raise UsageError(
            f"{path} contains no check list", why="An item is a line such as: - [ ] Fix the login"
        )
    whole = f"Do the open items of the check list in {path}, in order, and mark each there once it is done."
    items = tuple(open_items(text))
    return Spec(Path(path).stem, path, items, (path,), whole, lambda item: _item_prompt(item, path, ""))


def _item_prompt(item: Item, tasks: str, told: str) -> str:
    parts = [f"Do task {item.key} of {tasks}:", item.text, told]
    parts.append(
        f"Do only this task. Leave {tasks} as it is: the task is marked there once your work has landed."
    )
    return "\n\n".join(part for part in parts if part)


def _beads(farm: Farm, key: str | None) -> Spec:
    found = ready_beads(farm.root) if key in (None, "all") else [bead(farm.root, str(key))]
    if closed := next((one.key for one in found if one.is_done), None):
        raise UsageError(f"{closed} is closed", hint=as_command("bd", "reopen", closed))

    def prompt(item: Item) -> str:
        quoted = Issue(0, item.title, "", item.text).quoted
        last = "It is closed once your work has landed."
        return f"Work on {item.key} of beads: {item.title}\n\n{quoted}\n\n{last}"

    return Spec("", _BEADS, tuple(found), (), None, prompt)


def _text(farm: Farm, path: str, commit: str) -> str:
    data = farm.repository.read_blob(commit, path)
    if len(data) > _LARGEST:
        raise UsageError(f"{path} has {len(data)} bytes", why=f"The limit is {_LARGEST}.")
    return data.decode("utf-8", "replace").replace("\0", "")


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def each_item(context: Context, request: Spawn, commit: str) -> tuple[Item, ...]:
    """The items for `--item all`, those that wait for no other first."""
    items = read_spec(context.farm, str(request.spec), commit, "all").items
    if not items:
        raise NotFound(f"{request.spec} has no open item")
    return items


class Claimed:
    """Claims an issue in beads before its builder is made, and gives it back if that fails."""

    def __init__(self, farm: Farm, work: Work) -> None:
        place, key, _ = read_source(work.source or "")
        self._root, self._id = farm.root, key if place == _BEADS else None

    def __enter__(self) -> None:
        if self._id:
            claim(self._root, self._id)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._id and error is not None:
            try:
                give_back(self._root, self._id)
            except AgentFarmError as second:
                if isinstance(error, AgentFarmError):
                    error.evidence = (*error.evidence, f"{second.what}: {giving_back(self._id)}")
