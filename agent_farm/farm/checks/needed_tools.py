"""Checks the programs, the environment and the butlers' files that a farm depends on."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from agent_farm.errors import AgentFarmError
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm
from agent_farm.git.git_process import run_git
from agent_farm.runtimes import adapter_names
from agent_farm.runtimes.external_config import runtime_file_problem
from agent_farm.runtimes.origin import runtime_problem
from agent_farm.sessions.butlers import load_butler
from agent_farm.sessions.roster import FILE_NAME, butler_names, own_butler_name, roster_directory
from agent_farm.tmux.usable import is_too_old, server_is_too_old, tmux_problem

_OLDEST_GIT = (2, 39)
_GIT_SECONDS = 10.0  # a git that does not even report its version in time will answer nothing else
_PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
)


def check_git(farm: Farm) -> Iterator[Finding]:
    version = run_git(farm.root, "version", timeout=_GIT_SECONDS).split()[2]
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if numbers < _OLDEST_GIT:
        yield Finding("problem", f"git {version} is older than 2.39", "sudo apt-get install git")
    else:
        yield Finding("ok", f"git {version}")


def check_settings(farm: Farm) -> Iterator[Finding]:
    for problem in farm.settings.problems:
        text = f"{problem.what} ({problem.why})" if problem.why else problem.what
        yield Finding("problem", text, problem.hint)
    if not farm.settings.problems:
        yield Finding("ok", "settings")


def check_tmux(farm: Farm) -> Iterator[Finding]:
    problem = tmux_problem()
    if problem:
        yield Finding("problem", problem)
        return
    snapshot = farm.tmux.panes()
    if snapshot.known and (version := farm.tmux.version()) and is_too_old(version):
        yield Finding("problem", server_is_too_old(version))
    elif snapshot.known:
        count = len(snapshot.panes)
        yield Finding("ok", f"tmux, {count} builder session{'s' * (count != 1)} on this server")
    else:
        yield Finding("problem", f"tmux could not be asked: {snapshot.reason}")


def check_runtimes(farm: Farm) -> Iterator[Finding]:
    usable = [
        name
        for name in adapter_names(farm.root)
        if runtime_problem(farm.root, farm.settings, name, os.environ) is None
    ]
    if problem := runtime_file_problem(farm.root):
        yield Finding("problem", f"{problem.what}: {problem.why}", problem.hint)
    if usable == ["demo"]:
        yield Finding("note", "no runtime but demo is usable", "af runtimes")
    else:
        yield Finding("ok", f"runtimes: {', '.join(usable)}")


def check_environment(farm: Farm) -> Iterator[Finding]:
    """What git needs in a builder, and the declared environment lacks."""
    passed = set(farm.settings.agreed("env.pass"))
    for names, why in ((_PROXIES, "a proxy"), (_CERTIFICATES, "certificates of your own")):
        missing = [name for name in names if os.environ.get(name) and name not in passed]
        if missing:
            them = "it" if len(missing) == 1 else "them"
            yield Finding(
                "note",
                f"this shell uses {why} ({', '.join(missing)}); builders do not see {them}",
                f"af config set --user env.pass {','.join([*sorted(passed), *missing])}",
            )
    if os.environ.get("SSH_AUTH_SOCK") and "SSH_AUTH_SOCK" not in passed and _has_ssh_remote(farm):
        yield Finding(
            "note",
            "a remote uses ssh; builders do not see SSH_AUTH_SOCK and cannot push with the agent's keys",
            f"af config set --user env.pass {','.join([*sorted(passed), 'SSH_AUTH_SOCK'])}",
        )


def _has_ssh_remote(farm: Farm) -> bool:
    output = run_git(farm.root, "config", "--get-regexp", r"^remote\..*\.url$", ok=(0, 1))
    urls = [line.partition(" ")[2] for line in output.splitlines()]
    return any(url.startswith("ssh://") or ("@" in url and "://" not in url) for url in urls)


def check_butlers(farm: Farm) -> Iterator[Finding]:
    """What would keep a butler's server from starting."""
    good = []
    for name in dict.fromkeys([own_butler_name(farm.root), *butler_names(farm.root)]):
        try:
            good.append(load_butler(farm.root, name).name)
        except AgentFarmError as error:
            file = roster_directory(farm.root) / name / FILE_NAME
            edit = f"$EDITOR {shlex.quote(str(file.relative_to(farm.root)))}"
            remedy = edit if file.exists() else error.hint
            yield Finding("problem", f"{error.what}: {error.why}" if error.why else error.what, remedy)
    if good:
        yield Finding("ok", f"butlers: {', '.join(good)}")
