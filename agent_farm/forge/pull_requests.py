"""Pull requests of GitHub and merge requests of GitLab: opening, updating and reading that of a branch."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agent_farm.forge.forge_cli import ForgeCli, ForgeError, words_of

State = Literal["open", "merged", "closed"]

_STATES: Mapping[str, State] = {
    "open": "open", "opened": "open", "locked": "open", "merged": "merged", "closed": "closed",
}  # fmt: skip
_FIELDS = "number,url,state,headRefOid,baseRefName,isCrossRepository"
_MOST = "30"
_LONGEST_BODY = 60_000  # GitHub takes 65,536 characters


class PullRequestWanted(Struct, frozen=True):
    """`head` is the commit that the forge has of it, `into` the branch that it would be merged into."""

    number: int
    url: str
    state: State
    head: str
    into: str


def requests_of(cli: ForgeCli, branch: str) -> list[PullRequestWanted]:
    """Those of a branch of this repository, newest first; a fork's branch of the same name is left out."""
    what = f"look for pull requests of {branch}"
    if cli.name == "gh":
        asked = ["pr", "list", f"--head={branch}", "--state", "all", "--limit", _MOST, "--json", _FIELDS]
    else:
        asked = ["mr", "list", f"--source-branch={branch}", "--all", "--per-page", _MOST, "--output", "json"]
    rows = cli.ask(*asked, what=what)
    found = [_request(cli, row, what) for row in rows if _is_own(row)] if isinstance(rows, list) else []
    return sorted(found, key=lambda one: -one.number)


def request_numbered(cli: ForgeCli, number: int) -> PullRequestWanted:
    what = f"look at pull request {number}"
    if cli.name == "gh":
        return _request(cli, cli.ask("pr", "view", str(number), "--json", _FIELDS, what=what), what)
    return _request(cli, cli.ask("mr", "view", str(number), "--output", "json", what=what), what)


def open_request(cli: ForgeCli, branch: str, into: str, title: str, body: str, *, draft: bool) -> None:
    what = f"open a pull request of {branch}"
    more = ["--draft"] if draft else []
    if cli.name == "gh":
        _with_body(
            cli, ("pr", "create", f"--head={branch}", f"--base={into}", f"--title={title}", *more), body, what
        )
    else:
        asked = ("mr", "create", f"--source-branch={branch}", f"--target-branch={into}", f"--title={title}")
        cli.run(*asked, f"--description={_cut(body)}", "--yes", *more, what=what)


def update_request(cli: ForgeCli, number: int, title: str, body: str) -> None:
    what = f"update pull request {number}"
    if cli.name == "gh":
        _with_body(cli, ("pr", "edit", str(number), f"--title={title}"), body, what)
    else:
        cli.run(
            "mr", "update", str(number), f"--title={title}", f"--description={_cut(body)}", "--yes", what=what
        )


def _with_body(cli: ForgeCli, asked: tuple[str, ...], body: str, what: str) -> None:
    """Passes the body in a file, since an argument could be mistaken for an option."""
    with tempfile.TemporaryDirectory(prefix="af-pr-") as scratch:
        file = Path(scratch, "body.md")
        file.write_text(_cut(body), encoding="utf-8", errors="replace")
        cli.run(*asked, f"--body-file={file}", what=what)


def _cut(body: str) -> str:
    whole = body.replace("\0", "")
    return whole if len(whole) <= _LONGEST_BODY else f"{whole[:_LONGEST_BODY]}\n…\n"


def _is_own(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    return not row.get("isCrossRepository") and row.get("source_project_id") == row.get("target_project_id")


def _request(cli: ForgeCli, row: object, what: str) -> PullRequestWanted:
    facts = row if isinstance(row, dict) else {}
    number = facts.get("number", facts.get("iid"))
    state = _STATES.get(words_of(row, "state").lower())
    head = words_of(row, "headRefOid") or words_of(row, "sha")
    url = words_of(row, "url") or words_of(row, "web_url")
    if not isinstance(number, int) or state is None or not _is_commit(head):
        raise ForgeError(f"{cli.name} could not {what}", why="Its output is not a pull request.")
    into = words_of(row, "baseRefName") or words_of(row, "target_branch")
    is_address = url.startswith(("https://", "http://")) and url.isprintable() and " " not in url
    return PullRequestWanted(number, url if is_address else "", state, head, into)


def _is_commit(text: str) -> bool:
    return len(text) == 40 and set(text) <= set("0123456789abcdef")
