"""All of a checkout's uncommitted state as git objects, taken without touching its index or its files.

Contents are stored as they are on disk: no filter, no line-end conversion. The stored tree holds

    worktree/      every tracked and untracked file with its bytes and type
    staged/        the index as a tree
    unmerged/      the three sides of conflicting files
    index          the index file itself
    manifest.json  what trees cannot say: see Manifest
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from agent_farm.errors import DamagedFile
from agent_farm.git.builder_tree import BuilderTree, place_of, run_in
from agent_farm.git.command import ask_git, paths_of, small_environment
from agent_farm.git.finding import linked_git_dir
from agent_farm.paths import is_below

_MANIFEST_VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """`captured` maps the paths stored as they were on disk to their permission bits."""

    head: str
    branch: str | None
    captured: dict[str, int]
    untracked: list[str]
    empty_directories: list[str]
    nested: list[str]

    def to_json(self) -> bytes:
        return json.dumps({"version": _MANIFEST_VERSION} | asdict(self), indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Manifest:
        try:
            content = json.loads(data)
            if content["version"] != _MANIFEST_VERSION:
                raise DamagedFile(f"{name} was written by a newer af", hint="upgrade agent-farm")
            manifest = cls(**{field.name: content[field.name] for field in fields(cls)})
            for path in (*manifest.captured, *manifest.empty_directories, *manifest.nested):
                if not is_below(path):
                    raise ValueError(f"{path!r:.80} is no path in a worktree")
            return manifest
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFile(f"The manifest of {name} cannot be read", why=str(error)) from error


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`tree` is the stored state, `worktree_tree` the files alone."""

    tree: str
    worktree_tree: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    blob: str
    stage: str
    path: str


def take_snapshot(checkout: Path | BuilderTree) -> Snapshot:
    """The state at this moment; nobody should be writing meanwhile."""
    with tempfile.TemporaryDirectory(prefix="af-snapshot-") as scratch:
        return _Taking(checkout, Path(scratch)).take()


def private_git_dir(checkout: Path | BuilderTree) -> Path:
    """Where a checkout's own HEAD and index are."""
    if isinstance(checkout, BuilderTree):
        return checkout.git_dir
    return linked_git_dir(checkout / ".git") or checkout / ".git"


class _Taking:
    def __init__(self, where: Path | BuilderTree, scratch: Path) -> None:
        self.where = where
        self.checkout = place_of(where)
        self.scratch = scratch
        self.index = scratch / "index"

    def take(self) -> Snapshot:
        self._copy_index()
        entries = self._entries()
        tracked = {entry.path for entry in entries}
        unmerged = {entry.path for entry in entries if entry.stage != "0"}
        others = self._others()
        untracked = [path for path in others if not path.endswith("/")]
        suspects = [*self._changed(), *self._flagged(), *self._odd_modes(entries), *unmerged]
        present = self._present(dict.fromkeys([*suspects, *untracked]))
        gone = [path for path in suspects if path not in present]
        worktree = self._worktree_tree(entries, present, gone, unmerged)
        branch = run_in(self.where, "symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1)).strip()
        manifest = Manifest(
            head=run_in(self.where, "rev-parse", "HEAD").strip(),
            branch=branch or None,
            captured={path: stat.S_IMODE(found.st_mode) for path, found in present.items()},
            untracked=[path for path in untracked if path not in tracked],
            empty_directories=self._empty_directories(),
            nested=[path for path in others if path.endswith("/")],
        )
        return Snapshot(self._container(worktree, entries, unmerged, manifest), worktree, manifest)

    def _git(self, *args: str, input: bytes | None = None, index: Path | None = None) -> str:
        # The user's file monitor and index settings are about the real index, not about our copies.
        exact = ("-c", "core.fsmonitor=false", "-c", "core.fileMode=true", "-c", "core.splitIndex=false")
        env = {"GIT_INDEX_FILE": str(index or self.index)}
        return run_in(self.where, *exact, *args, input=input, env=env)

    def _copy_index(self) -> None:
        try:
            # With its time stamp: git compares it with the files' to find changes too fast for the clock.
            shutil.copy2(private_git_dir(self.where) / "index", self.index)
        except FileNotFoundError:
            self._git("read-tree", "--empty")

    def _entries(self) -> list[_Entry]:
        found = []
        for line in paths_of(self._git("ls-files", "--stage", "-z")):
            facts, _, path = line.partition("\t")
            mode, blob, stage = facts.split(" ")
            found.append(_Entry(mode, blob, stage, path))
        return found

    def _changed(self) -> list[str]:
        """Tracked paths whose file is not known to be what the index says, the merely touched included."""
        output = self._git("diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=dirty")
        return list(dict.fromkeys(paths_of(output)))

    def _flagged(self) -> list[str]:
        """Tracked files that git was told not to look at (skip-worktree, assume-unchanged)."""
        marked = (
            line
            for line in paths_of(self._git("ls-files", "-v", "-z"))
            if line[0] == "S" or line[0].islower()
        )
        return [line[2:] for line in marked if os.path.lexists(self.checkout / line[2:])]

    def _odd_modes(self, entries: Sequence[_Entry]) -> list[str]:
        """Tracked files with other permission bits than a checkout gives, of which git keeps only one."""
        umask = self._umask()
        usual = {"100644": 0o666 & ~umask, "100755": 0o777 & ~umask}
        return [entry.path for entry in entries if self._mode_differs(entry.path, usual.get(entry.mode))]

    def _mode_differs(self, path: str, usual: int | None) -> bool:
        try:
            mode = (self.checkout / path).lstat().st_mode
        except OSError:
            return False
        return usual is not None and stat.S_ISREG(mode) and stat.S_IMODE(mode) != usual

    def _umask(self) -> int:
        """Read off a new file: asking the process for it would change it for a moment, for all threads."""
        probe = self.scratch / "umask"
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY, 0o777))
        return 0o777 & ~stat.S_IMODE(probe.stat().st_mode)

    def _others(self) -> list[str]:
        """Untracked paths that are not ignored; nested repositories end with a slash."""
        return paths_of(self._git("ls-files", "--others", "--exclude-standard", "-z"))

    def _present(self, paths: Iterable[str]) -> dict[str, os.stat_result]:
        found = {}
        for path in paths:
            file = self.checkout / path
            try:
                facts = file.lstat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            if self._behind_link(path):
                continue
            if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                found[path] = facts
        return found

    def _behind_link(self, path: str) -> bool:
        """Whether a directory on the way is a link: then the tracked file is gone, and this is another's."""
        parts = path.split("/")[:-1]
        return any((self.checkout / "/".join(parts[: end + 1])).is_symlink() for end in range(len(parts)))

    def _worktree_tree(
        self,
        entries: Sequence[_Entry],
        present: dict[str, os.stat_result],
        gone: Sequence[str],
        unmerged: set[str],
    ) -> str:
        blobs = self._store(list(present), present)
        lines = [f"0 {'0' * 40}\t{path}\0" for path in {*unmerged, *gone}]
        links = {entry.path: entry for entry in entries if entry.mode == "160000"}
        for path in gone:
            head = self._submodule_head(path) if path in links else None
            if head:
                lines.append(f"160000 {head}\t{path}\0")
        for path, blob in blobs.items():
            lines.append(f"{_mode(present[path])} {blob}\t{path}\0")
        copy = self.scratch / "worktree-index"
        shutil.copy2(self.index, copy)
        self._git("update-index", "-z", "--index-info", input=_bytes(lines), index=copy)
        return self._git("write-tree", "--missing-ok", index=copy).strip()

    def _submodule_head(self, path: str) -> str | None:
        if not os.path.lexists(self.checkout / path / ".git"):
            return None
        question = ("rev-parse", "--verify", "--quiet", "HEAD")
        status, output, _ = ask_git(self.checkout / path, *question, base=small_environment())
        return None if status else output.decode().strip()

    def _store(self, paths: Sequence[str], facts: dict[str, os.stat_result]) -> dict[str, str]:
        """The bytes of each file, or of the link's target, as a blob."""
        if not paths:
            return {}
        lines = []
        for number, path in enumerate(paths):
            name = os.fsencode(f"./{path}")
            if stat.S_ISLNK(facts[path].st_mode):
                target = self.scratch / f"link-{number}"
                target.write_bytes(os.fsencode(os.readlink(self.checkout / path)))
                name = os.fsencode(target)
            lines.append(_quoted(name))
        output = self._git(
            "hash-object", "-w", "--no-filters", "--stdin-paths", input=b"\n".join(lines) + b"\n"
        )
        return dict(zip(paths, output.split(), strict=True))

    def _empty_directories(self) -> list[str]:
        """Directories without any file, which no tree can hold."""
        output = self._git("ls-files", "--others", "--exclude-standard", "--directory", "-z")
        found = []
        for path in paths_of(output):
            if path.endswith("/"):
                found += _empty_below(self.checkout, path.rstrip("/"))
        return sorted(found)

    def _container(
        self, worktree: str, entries: Sequence[_Entry], unmerged: set[str], manifest: Manifest
    ) -> str:
        sides = [entry for entry in entries if entry.stage != "0"]
        lines = [
            f"040000 tree {worktree}\tworktree\0",
            f"040000 tree {self._staged_tree(unmerged)}\tstaged\0",
            f"100644 blob {self._blob(self._whole_index())}\tindex\0",
            f"100644 blob {self._blob(manifest.to_json())}\tmanifest.json\0",
        ]
        if sides:
            flat = [f"{side.mode} blob {side.blob}\t{number}\0" for number, side in enumerate(sides)]
            lines.append(f"040000 tree {self._tree(flat)}\tunmerged\0")
        return self._tree(lines)

    def _staged_tree(self, unmerged: set[str]) -> str:
        copy = self.scratch / "staged-index"
        shutil.copy2(self.index, copy)
        if unmerged:
            lines = [f"0 {'0' * 40}\t{path}\0" for path in unmerged]
            self._git("update-index", "-z", "--index-info", input=_bytes(lines), index=copy)
        return self._git("write-tree", "--missing-ok", index=copy).strip()

    def _whole_index(self) -> bytes:
        if any(private_git_dir(self.where).glob("sharedindex.*")):
            self._git("update-index", "--no-split-index", "--force-write-index")
        return self.index.read_bytes()

    def _blob(self, content: bytes) -> str:
        return self._git("hash-object", "-w", "--stdin", "--no-filters", input=content).strip()

    def _tree(self, lines: Sequence[str]) -> str:
        return self._git("mktree", "-z", input=_bytes(lines)).strip()


def _mode(facts: os.stat_result) -> str:
    if stat.S_ISLNK(facts.st_mode):
        return "120000"
    return "100755" if facts.st_mode & stat.S_IXUSR else "100644"


def _bytes(lines: Iterable[str]) -> bytes:
    return "".join(lines).encode("utf-8", "surrogateescape")


def _quoted(path: bytes) -> bytes:
    """A path as git reads it between quotes, line breaks and all."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in path)
    return f'"{"".join(plain)}"'.encode()


def _empty_below(checkout: Path, folder: str) -> list[str]:
    """`folder` or the directories in it that hold nothing; nested repositories are not looked into."""
    found = []
    for current, folders, files in os.walk(checkout / folder):
        if ".git" in folders or ".git" in files:
            folders.clear()
        elif not folders and not files:
            found.append(os.path.relpath(current, checkout))
    return found
