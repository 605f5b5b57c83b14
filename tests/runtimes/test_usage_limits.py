"""A usage limit is a state and a failure of its own, told in the CLI's words with the time it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agent_farm.runtimes import ADAPTERS, get_adapter
from agent_farm.usage_limits import limit_in
from tests.conftest import Af
from tests.runtimes.panes import pane_of, pane_order

# what they say, and what is told of the end
SAID = [
    ("claude-code", "You've hit your session limit · resets 2pm (UTC)", "until 2pm (UTC)"),
    ("claude-code", "You've hit your limit · resets Apr 10, 7pm (CET)", "until Apr 10, 7pm (CET)"),
    ("claude-code", "You've hit your weekly limit", None),
    (
        "codex",
        "■ You've hit your usage limit. Upgrade to Plus to continue using Codex "
        "(https://chatgpt.com/explore/plus), or try again at 2:05 PM.",
        "until 2:05 PM",
    ),
    ("codex", "You've hit your usage limit. Try again later.", None),
    ("gemini", "Usage limit reached for all Pro models.\nAccess resets at 2:05 PM UTC.", "until 2:05 PM UTC"),
    (
        "gemini",
        "You have exhausted your capacity on this model. Your quota will reset after 8h44m7s.",
        "for 8h44m7s",
    ),
    ("gemini", "✕ [API Error: You have exhausted your daily quota on this model.]", None),
    (
        "copilot",
        "You've reached your weekly rate limit. Please wait for your limit to reset on April 20, 2026 at "
        "2:00 AM or switch to auto model to continue.",
        "until April 20, 2026 at 2:00 AM",
    ),
    (
        "copilot",
        "✗ Sorry, you've hit a rate limit that restricts the number of Copilot model requests you can make "
        "within a specific time period. Please try again in 2 hours. Please review our Terms",
        "for 2 hours",
    ),
    ("copilot", "You've hit your session rate limit.", None),
    (
        "opencode",
        "5 hour usage limit reached. It will reset in 3 hours 5 minutes. To continue using this model now, "
        "enable usage from your available balance",
        "for 3 hours 5 minutes",
    ),
    ("opencode", "Free usage exceeded, subscribe to Go", None),
]
NONE = [
    ("claude-code", "Server is temporarily limiting requests (not your usage limit)"),
    ("claude-code", "You've hit your monthly spend limit."),
    ("codex", "Your workspace is out of credits. Add credits to continue."),
    ("codex", "exceeded retry limit, last status: 429 Too Many Requests"),
    ("gemini", "[API Error: fake error 429]"),
    ("copilot", "GitHub is temporarily rate limiting requests. Try again later."),
    ("opencode", "Too Many Requests"),
]


@pytest.mark.parametrize(("name", "said", "end"), SAID)
def test_each_says_it_in_its_own_words(name: str, said: str, end: str | None) -> None:
    told = limit_in(said, get_adapter(name).cli.limited)
    assert told == (f"{end}: " if end else "") + " ".join(said.split())


@pytest.mark.parametrize(("name", "said"), NONE)
def test_what_time_does_not_lift_is_none(name: str, said: str) -> None:
    assert limit_in(said, get_adapter(name).cli.limited) is None


def test_of_a_text_of_any_length_only_the_beginning_counts() -> None:
    told = limit_in("you've hit your limit " * 100_000, get_adapter("claude-code").cli.limited)
    assert told
    assert len(told) <= 10_000


def test_every_cli_has_words_for_it() -> None:
    assert [name for name in ADAPTERS if not get_adapter(name).cli.limited] == []


PROMPT = "[[error:usage limit reached, resets 2pm]]"


def test_headless_it_is_a_kind_of_failure(repo: Path) -> None:
    result = asyncio.run(get_adapter("demo").invoke(PROMPT, "", {}, {"PATH": "/usr/bin:/bin"}, cwd=repo))
    assert result.failure is not None
    assert result.failure.kind == "limited"
    assert result.failure.message == "until 2pm: usage limit reached, resets 2pm"


def test_a_question_that_speaks_of_one_is_a_question(tmp_path: Path, repo: Path) -> None:
    demo = get_adapter("demo")
    order = pane_order(demo, tmp_path, repo, prompt="[[ask:May I grep for usage limit reached?]]")
    with pane_of(demo, order) as pane:
        assert "May I grep" in pane.wait_for_state("waiting")["reason"]


def test_a_builder_at_its_limit_waits_for_nobody_and_is_not_done(af: Af, repo: Path) -> None:
    limited = af("spawn", PROMPT, "--runtime", "demo").stdout.split()[0]
    assert af("wait", limited, "--for", "limited", "--timeout", "120").returncode == 0
    status = json.loads(af("status", "--json").stdout)["builders"][0]["status"]
    assert (status["state"], status["source"]) == ("limited", "hook")
    shown = af("status").stdout
    assert "Needs you" not in shown
    assert "until 2pm: usage limit reached" in shown
    assert af("wait", limited, "--timeout", "1").returncode == 124
    assert limited not in af("prune", "--dry-run").stdout
    assert af("send", limited, "go on").returncode == 0
    assert af("wait", limited, "--for", "idle", "--timeout", "120").returncode == 0
