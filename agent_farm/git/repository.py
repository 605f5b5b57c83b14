"""A repository: where it is, and what its commits contain."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from agent_farm.errors import NotFound, nearest
from agent_farm.git.branch_files import branch_in_files
from agent_farm.git.checkout import Checkout, Head, linked_tree, main_checkout
from agent_farm.git.git_process import GitError, ask_git, paths_of, run_git, run_git_bytes
from agent_farm.git.locate import locate
from agent_farm.git.own_places import require_own_places

if TYPE_CHECKING:
    from git import Repo

EntryKind = Literal["blob", "tree"]


class Repository(Struct, frozen=True):
    """`root` is the main checkout, even if `checkout` (where the user is) is a linked worktree.

    `git_dir` belongs to `root`: in a bare repository, whose `root` is a linked worktree, it is not
    `common_dir`.
    """

    root: Path
    common_dir: Path
    checkout: Path
    prefix: str
    git_dir: Path

    def name_in(self, root: Path) -> str:
        """What people call the repository at `root`; a bare one is not named after a worktree."""
        if self.git_dir == self.common_dir:
            return root.name
        shared = Path(os.path.normpath(root / os.path.relpath(self.common_dir, self.root)))
        return shared.parent.name if shared.name.startswith(".") else shared.name.removesuffix(".git")

    def head(self, checkout: Path | None = None) -> Head:
        """HEAD of the user's checkout, or of the one given."""
        return self._tree(checkout or self.checkout).head()

    def resolve_commit(self, ref: str) -> str:
        """The full hash of a branch, tag or revision; else NotFound with the nearest name."""
        if ref and "\0" not in ref:
            question = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
            status, output, _ = self.persons_checkout().ask(*question)
            if not status:
                return output.decode().strip()
        raise self._unknown(ref)

    def persons_checkout(self) -> Checkout:
        """The checkout the user is in: the main one, or a linked worktree, which may be a builder's."""
        return self._tree(self.checkout)

    def _tree(self, checkout: Path) -> Checkout:
        return main_checkout(self) if checkout == self.root else linked_tree(self, checkout)

    def branch_commit(self, name: str) -> str | None:
        """The tip of a local branch; None if it does not exist."""
        ref = f"refs/heads/{name}"
        status, output, stderr = ask_git(self.root, "show-ref", "--verify", "--hash", ref)
        if not status:
            return output.decode().strip()
        if b"not a valid ref" in stderr:
            return None
        why = stderr.decode("utf-8", "replace").strip()  # git was killed, for example, which is no answer
        raise GitError(f"git could not be asked for the branch {name}", why=why, status=status)

    def has_branch(self, name: str) -> bool:
        """Whether there is such a local branch; asks git only if its files do not tell."""
        commit = branch_in_files(self.common_dir, name)
        return self.branch_commit(name) is not None if commit is None else bool(commit)

    def is_valid_branch(self, name: str) -> bool:
        if not name or name == "HEAD" or name.startswith("-") or "\0" in name:
            return False
        return ask_git(self.root, "check-ref-format", f"refs/heads/{name}")[0] == 0

    def list_directory(self, commit: str, path: str) -> list[str]:
        """The names in a directory of a commit; none if it does not exist there."""
        folder = path.strip("/")
        status, output, _ = ask_git(self.root, "ls-tree", "-z", "--name-only", f"{commit}:{folder}")
        return [] if status else paths_of(output.decode("utf-8", "surrogateescape"))

    def entry_kind(self, commit: str, path: str) -> EntryKind | None:
        return self.entry_kinds(commit, [path])[path]

    def entry_kinds(self, commit: str, paths: Sequence[str]) -> dict[str, EntryKind | None]:
        """What each path is in a commit, None if it does not exist; one process for all."""
        names = [f"{commit}:{path.strip('/')}" for path in paths]
        question = "".join(f"{name}\0" for name in names)
        answer = run_git(self.root, "cat-file", "-z", "--batch-check=%(objecttype)", input=question)
        kinds: dict[str, EntryKind | None] = {}
        for path, name in zip(paths, names, strict=True):
            # git echoes the path if it is absent, line breaks included, so lines alone do not separate the
            # answers.
            absent = f"{name} missing\n"
            line = absent if answer.startswith(absent) else answer[: answer.index("\n") + 1]
            answer = answer[len(line) :]
            kind = line.strip()
            kinds[path] = "blob" if kind == "blob" else "tree" if kind == "tree" else None
        return kinds

    def directories(self, commit: str, paths: Sequence[str]) -> set[str]:
        """Those of the paths that are directories in a commit, submodules included."""
        kinds = self.entry_kinds(commit, paths) if paths else {}
        found = {path for path, kind in kinds.items() if kind == "tree"}
        if others := [
            path for path, kind in kinds.items() if kind is None
        ]:  # it has no object of a submodule
            words = ("--literal-pathspecs", "ls-tree", "-z", "-d", "--full-tree", "--name-only", commit, "--")
            found |= set(others) & set(paths_of(run_git(self.root, *words, *others)))
        return found

    def link_out(self, commit: str, paths: Sequence[str]) -> tuple[str, str] | None:
        """The first of these paths that is a link leading out of the commit's tree, and where it leads."""
        for path in paths:
            options = ("-z", "--follow-symlinks", "--batch-check=%(objecttype)")
            answer = run_git(self.root, "cat-file", *options, input=f"{commit}:{path}\0")
            if answer.startswith(("symlink ", "dangling ", "loop ", "notdir ")):
                return path, answer.partition("\n")[2].rstrip("\n")
        return None

    def read_blob(self, commit: str, path: str) -> bytes:
        """A file's bytes as committed; NotFound if it is not in that commit."""
        try:
            return run_git_bytes(self.root, "cat-file", "blob", f"{commit}:{path}")
        except GitError as error:
            raise NotFound(f"{path} is not in commit {commit[:12]}", why=error.why) from error

    def read_followed(self, commit: str, paths: Sequence[str]) -> dict[str, tuple[str, bytes]]:
        """Kind and bytes of each path in a commit, following links within it; one process for all."""
        names = [f"{commit}:{path}".encode("utf-8", "surrogateescape") for path in paths]
        options = ("-z", "--follow-symlinks", "--batch=%(objecttype) %(objectsize)")
        question = b"".join(name + b"\0" for name in names)
        answer = run_git_bytes(self.root, "cat-file", *options, input=question)
        found: dict[str, tuple[str, bytes]] = {}
        for path, name in zip(paths, names, strict=True):
            if answer.startswith(absent := name + b" missing\n"):
                answer = answer.removeprefix(absent)
                continue
            head, _, answer = answer.partition(b"\n")
            kind, size = head.decode().split()
            if kind in ("blob", "tree"):  # otherwise a link that leads out of the commit, or nowhere
                found[path] = kind, answer[: int(size)]
            answer = answer[int(size) + 1 :]
        return found

    def branches(self) -> list[str]:
        """All local branches."""
        names = run_git(self.root, "for-each-ref", "--format=%(refname)", "refs/heads").splitlines()
        return [name.removeprefix("refs/heads/") for name in names]

    def remote_branches(self) -> list[str]:
        """Full names of the remote-tracking branches, without symbolic ones."""
        names = run_git(self.root, "for-each-ref", "--format=%(refname)%09%(symref)", "refs/remotes")
        pairs = (line.split("\t", 1) for line in names.splitlines())
        return [name for name, symbolic in pairs if not symbolic]

    def _unknown(self, ref: str) -> NotFound:
        with open_repo(self.root, self.common_dir) as repo:
            known = [reference.name for reference in repo.references]
        close = nearest(ref, known)
        return NotFound(
            f"No such commit: {ref!r}",
            why=f"The nearest name is {close}." if close else None,
            hint=None if close else "git branch --all",
        )


def find_repository(cwd: Path) -> Repository:
    """The repository of `cwd`, with one call of git (two from a linked worktree).

    Refused if `.agent-farm` or `.builders` are not af's own: nothing in them can be trusted then.
    """
    place = locate(cwd)
    require_own_places(place.root, place.git_dir)
    return Repository(place.root, place.common_dir, place.checkout, place.prefix, place.git_dir)


@contextmanager
def open_repo(root: Path, common_dir: Path) -> Iterator[Repo]:
    """The repository while the block lasts, whatever GIT_* variables were inherited."""
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # on import it asks git its version
    from git import Repo  # takes 80 ms, which only rare commands pay

    with Repo(root, expand_vars=False) as repo:  # a `$` in a path is a plain character
        if os.path.realpath(repo.common_dir) != os.path.realpath(common_dir):
            raise GitError(
                f"The environment names a repository other than {root}", hint="unset GIT_COMMON_DIR"
            )
        repo.git.update_environment(
            GIT_DIR=os.fspath(repo.git_dir),
            GIT_COMMON_DIR=os.fspath(common_dir),
            GIT_WORK_TREE=os.fspath(root),
            GIT_OBJECT_DIRECTORY=os.fspath(common_dir / "objects"),
        )
        yield repo
