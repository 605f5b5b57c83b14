"""All commands in one literal table, so that `af --help` imports none of them."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    module: str
    attribute: str
    section: str
    help: str


# Names that other tools use. The value is what to type after `af` instead.
ALSO_CALLED = {
    "ls": "status", "list": "status", "ps": "status",
    "rm": "prune", "remove": "prune", "delete": "prune", "cleanup": "prune", "clean": "prune",
    "log": "logs", "tail": "logs", "open": "attach", "cd": "path", "kill": "stop",
    "new": "spawn", "create": "spawn", "add": "spawn", "start": "spawn",
    "help": "--help", "version": "--version",
}  # fmt: skip

SECTIONS = ("Builders", "Landing", "Headless", "Local context", "Farm")

COMMANDS = {
    "spawn": Entry("spawn", "spawn", "Builders", "Start a builder: a task, a spec, a protocol or a shell"),
    "queue": Entry("queued", "queue", "Builders", "Start queued builders, and list those still waiting"),
    "status": Entry("status", "status", "Builders", "List builders and their state"),
    "board": Entry("board", "board", "Builders", "Show all builders on one screen, and act in place"),
    "dash": Entry("dash", "dash", "Builders", "Open the dashboard in the browser"),
    "attach": Entry("attach", "attach", "Builders", "Attach to a builder's tmux session"),
    "send": Entry("send", "send", "Builders", "Send a message to running builders"),
    "wait": Entry("wait", "wait", "Builders", "Wait until builders are idle, waiting or ended"),
    "capture": Entry("look", "capture", "Builders", "Print a builder's screen"),
    "logs": Entry("look", "logs", "Builders", "Print what happened to a builder"),
    "costs": Entry("costs", "costs", "Builders", "Sum up the tokens and the cost of builders"),
    "path": Entry("look", "path", "Builders", "Print a builder's worktree path"),
    "stop": Entry("stop", "stop", "Builders", "End runtimes and keep the work"),
    "forward": Entry("forward", "forward", "Builders", "Pass ports on to a builder on another machine"),
    "serve": Entry("serve", "serve", "Builders", "Pass a fixed port on to one builder at a time"),
    "setup": Entry("setup", "setup", "Builders", "Prepare a builder's worktree once more"),
    "resume": Entry("resuming", "resume", "Builders", "Continue a builder's conversation"),
    "recover": Entry(
        "resuming", "recover", "Builders", "Bring builders back after a reboot or a dead tmux server"
    ),
    "diff": Entry("diff", "diff", "Landing", "Show what a builder changed"),
    "review": Entry("review", "review", "Landing", "Review results, riskiest first"),
    "check": Entry("check", "check", "Landing", "Prove builders' work with the checks of the repository"),
    "compare": Entry("contest", "compare", "Landing", "Rank builders that had the same task"),
    "keep": Entry("contest", "keep", "Landing", "Keep one of those compared, and remove the others"),
    "merge": Entry("merge", "merge", "Landing", "Land builders' branches"),
    "land": Entry("land", "land", "Landing", "Land builders' work in groups that pass the checks"),
    "conflicts": Entry("conflicts", "conflicts", "Landing", "Preview merge conflicts between builders"),
    "sync": Entry("sync", "sync", "Landing", "Move builders' commits onto what they are to land on"),
    "pr": Entry("pr", "pr", "Landing", "Push builders' work and open pull requests for it"),
    "prune": Entry("prune", "prune", "Landing", "Remove builders whose work has landed"),
    "restore": Entry("restore", "restore", "Landing", "Bring a pruned builder back"),
    "run": Entry("run", "run", "Headless", "Run a prompt headless and print what came of it"),
    "trigger": Entry("run", "trigger", "Headless", "Hand a prompt to the farm's server"),
    "sessions": Entry("sessions", "sessions", "Headless", "Show headless sessions"),
    "butler": Entry("butler", "butler", "Headless", "Start, stop and inspect the farm's server"),
    "schedule": Entry("schedule", "schedule", "Headless", "Run prompts at set times"),
    "credentials": Entry("butler", "credentials", "Headless", "Keep keys for sessions, encrypted"),
    "acp": Entry("editor", "acp", "Builders", "Serve builders to an editor over stdio"),
    "mcp": Entry("butler", "mcp", "Headless", "Serve the architect's tools over stdio"),
    "ask": Entry("ask", "ask", "Local context", "Ask a question about local sources"),
    "chat": Entry("ask", "chat", "Local context", "Talk with your AI CLI about local sources"),
    "sources": Entry("ask", "sources", "Local context", "Add, list and update the sources of af ask"),
    "import": Entry("moving", "import_", "Farm", "Take over worktrees made by another tool"),
    "eject": Entry("moving", "eject", "Farm", "Leave a builder's worktree and branch to you"),
    "uninstall": Entry("moving", "uninstall", "Farm", "Remove what af keeps in this repository"),
    "init": Entry("upkeep", "init", "Farm", "Set up codev/ and agent-farm.toml"),
    "doctor": Entry("upkeep", "doctor", "Farm", "Find and repair what is broken"),
    "runtimes": Entry("runtimes", "runtimes", "Farm", "List AI CLIs and test their setup"),
    "adapter": Entry("runtimes", "adapter", "Farm", "Run or find the adapter executables that af ships"),
    "config": Entry("config", "config", "Farm", "Show and change settings"),
    "fleet": Entry("fleet", "fleet", "Farm", "Add, inspect and remove machines for builders"),
    "pool": Entry("upkeep", "pool", "Farm", "Keep worktrees ready for the next spawns"),
    "notify": Entry("upkeep", "notify", "Farm", "Test the targets of notify.to"),
    "tmux": Entry("board", "tmux_lines", "Farm", "Print lines for tmux.conf: a key and a segment"),
    "man": Entry("man", "man", "Farm", "Write manual pages"),
    "completion": Entry("completion", "completion", "Farm", "Print the completion script of a shell"),
}
