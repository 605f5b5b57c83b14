"""What was reviewed is what lands: the commits that are checked out, looked at whole and clean."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, make_repo, write_files
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]


@pytest.fixture
def builder(spawn: Spawn) -> Spawned:
    builder = spawn("--shell")
    commit_files(builder.worktree, {"one.txt": "1\n"}, "one")
    return builder


def merge(builder: Spawned, *options: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return builder.af("merge", *options, builder.id, cwd=cwd)


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD")


def refused(builder: Spawned, *options: str, code: int = 1) -> str:
    before = (head(builder.repo), git(builder.repo, "status", "--porcelain"))
    done = merge(builder, *options)
    assert done.returncode == code, done.stdout + done.stderr
    assert (head(builder.repo), git(builder.repo, "status", "--porcelain")) == before
    assert git(builder.repo, "worktree", "list").count("\n") == 1  # the main checkout and the builder's
    return done.stderr


def test_work_on_another_branch_lands_and_is_named(builder: Spawned) -> None:
    builder.git("switch", "-q", "-c", "fix/auth")
    commit_files(builder.worktree, {"two.txt": "2\n"}, "two")
    done = merge(builder)
    assert done.returncode == 0, done.stderr
    assert "landed on main (from fix/auth)" in done.stdout
    assert (builder.repo / "one.txt").exists()
    assert (builder.repo / "two.txt").exists()


def test_a_filter_sees_the_users_environment_where_files_are_written_and_no_key_where_they_are_read(
    builder: Spawned, tmp_path: Path
) -> None:
    """As docs/safety.md says: git-lfs may have to ask its server when it writes a file out."""
    seen, key = tmp_path / "seen", {"MY_KEY": "the-users-own"}
    for verb in ("clean", "smudge"):
        git(builder.repo, "config", f"filter.own.{verb}", f"env >> '{seen}'; cat")
    commit_files(builder.worktree, {".gitattributes": "*.own filter=own\n", "a.own": "1\n"}, "own")
    write_files(builder.worktree, {"a.own": "2\n"})
    seen.unlink()
    assert builder.af("status", "--fresh", env=key).returncode == 0
    assert builder.af("diff", builder.id, env=key).returncode == 0
    assert "the-users-own" not in seen.read_text()
    git(builder.worktree, "checkout", "-q", "a.own")
    assert builder.af("merge", builder.id, env=key).returncode == 0
    assert "MY_KEY=the-users-own" in seen.read_text()


def test_work_on_a_renamed_branch_lands(builder: Spawned) -> None:
    builder.git("branch", "-m", "nicer")
    done = merge(builder, "--json")
    assert json.loads(done.stdout)["merged"][0]["branch"] == "nicer"
    assert (builder.repo / "one.txt").exists()


def test_work_on_a_detached_head_lands(builder: Spawned) -> None:
    builder.git("switch", "-q", "--detach")
    commit_files(builder.worktree, {"two.txt": "2\n"}, "two")
    done = merge(builder, "--json")
    assert json.loads(done.stdout)["merged"][0]["branch"] is None
    assert (builder.repo / "two.txt").exists()


def test_commits_that_are_not_checked_out_refuse_with_the_command_that_brings_them(
    builder: Spawned, af: Af
) -> None:
    builder.git("switch", "-q", "-c", "fix/auth", "HEAD~1")
    commit_files(builder.worktree, {"two.txt": "2\n"}, "two")
    told = refused(builder, code=4)
    assert "fix/auth checked out" in told
    assert f"{builder.branch} holds 1 commit that" in told
    assert "one" in told.splitlines()[2]
    hint = told.partition("hint: ")[2].strip()
    assert hint == f"git -C {builder.worktree} merge --no-edit {builder.branch} && af merge {builder.id}"
    git(builder.worktree, "merge", "-q", "--no-edit", builder.branch)
    assert merge(builder).returncode == 0
    assert (builder.repo / "one.txt").exists()
    assert (builder.repo / "two.txt").exists()


def test_an_older_commit_that_is_checked_out_refuses(builder: Spawned) -> None:
    builder.git("switch", "-q", "--detach", "HEAD~1")
    told = refused(builder, code=4)
    assert f"hint: git -C {builder.worktree} switch {builder.branch} && af merge {builder.id}\n" in told


def test_a_rebase_under_way_refuses(builder: Spawned) -> None:
    commit_files(builder.worktree, {"two.txt": "2\n"}, "two")
    builder.git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~2")
    refused(builder, code=4)


def test_conflicts_are_of_what_is_checked_out(builder: Spawned, af: Af) -> None:
    commit_files(builder.repo, {"two.txt": "theirs\n"}, "theirs")
    builder.git("switch", "-q", "-c", "fix/auth")
    commit_files(builder.worktree, {"two.txt": "2\n"}, "two")
    assert af("conflicts", builder.id).stdout.split() == [builder.id, "main", "two.txt"]


@pytest.mark.parametrize(("strategy", "body"), [("merge", "{trailer}"), ("squash", "* one\n\n{trailer}")])
def test_the_message_is_the_task_and_names_the_builder(spawn: Spawn, strategy: str, body: str) -> None:
    builder = spawn("[[nocommit]]Fix the login\x1b[31m redirect\nand more\n")
    commit_files(builder.worktree, {"one.txt": "1\n"}, "one")
    assert merge(builder, "--strategy", strategy).returncode == 0
    subject, _, rest = git(builder.repo, "log", "-1", "--format=%B").partition("\n\n")
    assert subject == "[[nocommit]]Fix the login[31m redirect"
    assert rest == body.format(trailer=f"Builder: {builder.id}")
    trailers = git(builder.repo, "log", "-1", "--format=%(trailers:key=Builder,valueonly)")
    assert trailers == builder.id


def test_the_message_of_a_spec_is_its_title_and_a_long_one_is_cut(spawn: Spawn, repo: Path) -> None:
    title = "Greeting " + "everybody who comes in " * 5
    commit_files(repo, {"codev/specs/0001-greeting.md": f"intro\n\n# {title}\n"}, "spec")
    builder = spawn("--project", "1")
    commit_files(builder.worktree, {"one.txt": "1\n"}, "one")
    assert merge(builder).returncode == 0
    subject, whole, trailer = git(repo, "log", "-1", "--format=%B").split("\n\n")
    assert len(subject) <= 72
    assert subject.startswith("Greeting everybody")
    assert subject.endswith("…")
    assert (whole, trailer) == (title.strip(), "Builder: 0001")


def test_the_check_sees_what_lands_and_nothing_else(builder: Spawned, repo: Path) -> None:
    """The result of the merge, clean and detached; not what is uncommitted in the builder's worktree."""
    commit_files(repo, {"theirs.txt": "x\n"}, "theirs")
    write_files(builder.worktree, {"untracked.txt": "u\n"})
    seen = repo.parent / "seen"
    check = f"git status --porcelain --branch > '{seen}'; ls >> '{seen}'; git rev-parse HEAD >> '{seen}'"
    assert builder.af("config", "set", "merge.check", check).returncode == 0
    done = merge(builder, "--yes")
    assert done.returncode == 0, done.stderr
    assert seen.read_text().split("\n")[:-1] == [
        "## HEAD (no branch)", "README.md", "one.txt", "theirs.txt", head(repo),
    ]  # fmt: skip


def test_a_commit_made_during_the_check_does_not_land(builder: Spawned, repo: Path) -> None:
    late = f"git -C '{builder.worktree}' -c core.hooksPath=/dev/null commit -q --allow-empty -m late"
    assert builder.af("config", "set", "merge.check", late).returncode == 0
    assert merge(builder, "--yes").returncode == 0
    assert builder.git("log", "-1", "--format=%s") == "late"
    assert "late" not in git(repo, "log", "--format=%s")


def test_the_check_is_not_run_when_there_is_nothing_to_land(spawn: Spawn, repo: Path) -> None:
    builder = spawn("--shell")
    builder.af("config", "set", "merge.check", "false")
    assert "nothing to land" in merge(builder, "--yes").stdout


def test_a_commit_on_main_during_the_check_has_the_check_run_again(builder: Spawned, repo: Path) -> None:
    once = repo.parent / "once"
    commit = repo.parent / "commit"
    commit.write_text(f"cd '{repo}'; touch theirs; git add theirs; git commit -q -m meanwhile")
    check = (
        f"test -e '{once}' || {{ touch '{once}'; sh '{commit}'; }};"
        f" git log --format=%s | grep -c . >> '{once}'"
    )
    assert builder.af("config", "set", "merge.check", check).returncode == 0
    done = merge(builder, "--yes")
    assert done.returncode == 0, done.stderr
    assert once.read_text().split() == ["3", "4"]
    assert git(repo, "log", "--first-parent", "-2", "--format=%s").splitlines()[1] == "meanwhile"


def hook(repo: Path, name: str, script: str, directory: str = ".git/hooks") -> None:
    file = repo / directory / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    "name", ["pre-merge-commit", "prepare-commit-msg", "commit-msg", "reference-transaction"]
)
def test_a_hook_that_refuses_keeps_the_merge_from_landing(builder: Spawned, repo: Path, name: str) -> None:
    hook(repo, name, "echo not on a Friday; exit 1" if name != "reference-transaction" else "exit 1")
    told = refused(builder)
    assert name == "reference-transaction" or ("not on a Friday" in told and f"The hook {name}" in told)
    (repo / ".git/hooks" / name).unlink()
    assert merge(builder).returncode == 0


def test_hooks_see_the_merge_and_change_its_message(builder: Spawned, repo: Path) -> None:
    commit_files(repo, {"theirs.txt": "x\n"}, "theirs")
    seen = repo.parent / "seen"
    hook(repo, "pre-merge-commit", f"git diff --cached --name-only > '{seen}'; cat one.txt >> '{seen}'")
    hook(repo, "prepare-commit-msg", 'echo >> "$1"; echo "source: $2" >> "$1"')
    hook(repo, "commit-msg", 'echo "Change-Id: I1" >> "$1"; pwd >> "$1"')
    hook(repo, "post-merge", f"echo after $1; git log -1 --format=%s >> '{seen}'")
    done = merge(builder, "-m", "Land it")
    assert done.returncode == 0, done.stderr
    assert seen.read_text().splitlines() == ["one.txt", "1", "Land it"]
    assert "after 0" in done.stderr
    body = git(repo, "log", "-1", "--format=%B").splitlines()
    assert body == ["Land it", "", "source: merge", "Change-Id: I1", str(repo)]


def test_a_squash_runs_pre_commit_and_what_a_hook_adds_lands(builder: Spawned, repo: Path) -> None:
    hook(repo, "pre-commit", "echo made > generated.txt; git add generated.txt")
    hook(repo, "pre-merge-commit", "exit 1")
    assert merge(builder, "--strategy", "squash").returncode == 0
    assert (repo / "generated.txt").read_text() == "made\n"
    assert git(repo, "status", "--porcelain") == ""


def test_hooks_in_a_builders_worktree_are_not_run(builder: Spawned, repo: Path) -> None:
    ran = repo.parent / "ran"
    names = ("pre-merge-commit", "commit-msg", "post-merge", "reference-transaction", "post-index-change")
    for name in names:
        hook(builder.worktree, name, f"touch '{ran}'", "hooks")
    git(repo, "config", "core.hooksPath", str(builder.worktree / "hooks"))
    commit_files(builder.worktree, {"two.txt": "2\n"})
    ran.unlink(missing_ok=True)
    assert merge(builder).returncode == 0
    assert not ran.exists()


def test_a_signature_that_cannot_be_made_has_a_hint(builder: Spawned, repo: Path) -> None:
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "gpg.program", "false")
    told = refused(builder)
    assert "failed to sign" in told
    assert "hint: git config" in told


@pytest.fixture
def linked(repo: Path) -> Path:
    """A worktree of the person's own, on the branch `other`."""
    place = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", "-b", "other", str(place))
    commit_files(place, {"other.txt": "o\n"}, "other's own")
    return place


def test_a_merge_lands_where_the_person_stands(linked: Path, repo: Path, af: Af) -> None:
    spawned = af("spawn", "--shell", "--runtime", "demo", "--json", cwd=linked)
    record = json.loads(spawned.stdout)["builder"]
    commit_files(Path(record["worktree"]), {"one.txt": "1\n"}, "one")
    before = head(repo)

    told = af("merge", record["id"])
    assert told.returncode == 1
    assert "began from other" in told.stderr
    assert "--here lands it on main." in told.stderr
    assert f"hint: cd {linked} && af merge {record['id']}\n" in told.stderr

    write_files(linked, {"uncommitted.txt": "u\n"})
    done = af("merge", record["id"], cwd=linked)
    assert done.returncode == 0, done.stderr
    assert "landed on other" in done.stdout
    assert (linked / "one.txt").exists()
    assert git(linked, "status", "--porcelain") == "?? uncommitted.txt"
    assert head(repo) == before
    assert git(repo, "status", "--porcelain") == ""


def test_here_is_where_the_person_stands(builder: Spawned, linked: Path) -> None:
    before = head(builder.repo)
    told = merge(builder, cwd=linked)
    assert told.returncode == 1
    assert "--here lands it on other." in told.stderr
    assert f"hint: cd {builder.repo} && af merge {builder.id}\n" in told.stderr
    assert "landed on other" in merge(builder, "--here", cwd=linked).stdout
    assert head(builder.repo) == before
    assert (linked / "one.txt").exists()


def test_from_a_builders_worktree_it_lands_on_the_main_checkout(builder: Spawned) -> None:
    assert "landed on main" in merge(builder, cwd=builder.worktree).stdout
    assert (builder.repo / "one.txt").exists()


def test_a_submodule_commit_that_nobody_else_has_is_refused(spawn: Spawn, repo: Path) -> None:
    upstream = make_repo(repo.parent / "upstream")
    git(repo.parent, "clone", "-q", "--bare", str(upstream), "sub.git")
    git(repo, "submodule", "--quiet", "add", str(repo.parent / "sub.git"), "sub")
    git(repo, "commit", "-q", "-m", "with a submodule")
    builder = spawn("--shell")
    builder.git("submodule", "--quiet", "update", "--init")
    commit_files(builder.worktree / "sub", {"new.txt": "n\n"}, "in the submodule")
    builder.git("commit", "-q", "-a", "-m", "bump")
    told = refused(builder)
    assert "the submodule sub that exists nowhere else" in told
    assert f"hint: git -C {builder.worktree / 'sub'} push origin HEAD\n" in told
    assert f"sub {git(builder.worktree / 'sub', 'rev-parse', 'HEAD')}" in told
    git(builder.worktree / "sub", "push", "-q", "origin", "HEAD:refs/heads/main")
    done = merge(builder)
    assert done.returncode == 0, done.stderr
    git(repo, "submodule", "--quiet", "update")
    assert (repo / "sub/new.txt").exists()


def test_merge_and_prune_keeps_one_that_works(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn("--shell")
    commit_files(builder.worktree, {"one.txt": "1\n"}, "one")
    done = af("spawn", "--runtime", "demo", "[[sleep:600]]", "--json")
    working = json.loads(done.stdout)["builder"]
    wait_until(
        lambda: (
            json.loads(af("status", working["id"], "--json").stdout)["builders"][0]["status"]["state"]
            == "working"
        ),
        timeout=60,
    )
    commit_files(Path(working["worktree"]), {"two.txt": "2\n"}, "two")
    done = af("merge", working["id"], builder.id, "--prune", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [row["id"] for row in document["merged"]] == [working["id"], builder.id]
    assert [one["id"] for one in document["removed"]] == [builder.id]
    assert [(one["id"], one["reason"], one["hint"]) for one in document["kept"]] == [
        (working["id"], "It is working.", f"af prune --stop {working['id']}")
    ]
    assert traces(repo).records == {working["id"]}
    af("stop", working["id"])


def test_merge_and_prune_looks_at_what_stands_against_it_before_it_stops_anything(
    builder: Spawned, af: Af
) -> None:
    git(builder.repo, "worktree", "lock", str(builder.worktree))
    state = builder.state
    done = merge(builder, "--prune")
    assert done.returncode == 0, done.stderr
    assert (builder.repo / "one.txt").exists()
    assert f"{builder.id} was kept: its worktree is locked." in done.stderr
    assert builder.state == state not in ("stopped", "exited")


@pytest.mark.parametrize("name", [".agent-farm/registry.json", ".builders/other/README.md"])
def test_what_belongs_to_af_does_not_land(builder: Spawned, name: str) -> None:
    """It would have every af refuse the repository afterwards."""
    write_files(builder.worktree, {name: "{}\n"})
    builder.git("add", "--force", name)
    builder.git("commit", "-q", "-m", "planted")
    said = refused(builder)
    assert f"has committed {name.partition('/')[0]}" in said
    assert "rm -r --cached" in said
