"""Memory: what earlier sessions said, found by SQLite's full-text search. It never stops a session."""

from __future__ import annotations

import logging
import re
import time

from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import reason_of

HEADING = "## From earlier sessions"
WORD = re.compile(r"\w{4,}")
_DULL = (
    "about again could from have here into just more please should some that their them then there "
    "these they this those what when where which will with would your"
)
SAYS_NOTHING = frozenset(_DULL.split())
MOST_WORDS = 40

_log = logging.getLogger(__name__)


async def fetch_memory_context(
    database: Database, butler: str, prompt: str, *, episodes: int = 5, characters: int = 4000
) -> str | None:
    """The episodes that match `prompt` best, as text for a system prompt; None if there are none.

    Errors are logged, and the answer is then None.
    """
    try:
        return await database.run(_recall, database, butler, prompt, episodes, characters)
    except Exception as error:
        _log.warning("Memory could not be read; the session goes on without it: %s", reason_of(error))
        return None


async def store_session_episode(
    database: Database, butler: str, session_id: str, prompt: str, output: str
) -> bool:
    """Returns whether the episode was stored; errors are logged."""
    if not output.strip():
        return False
    try:
        await database.run(_store, database, (butler, session_id, prompt, output, time.time()))
        return True
    except Exception as error:
        _log.warning("The session's episode could not be stored: %s", reason_of(error))
        return False


def _recall(database: Database, butler: str, prompt: str, episodes: int, characters: int) -> str | None:
    question = _any_word_of(prompt)
    if not question:
        return None
    rows = database.query(
        "SELECT e.prompt, e.output, e.created_at FROM episodes_text"
        " JOIN episodes e ON e.number = episodes_text.rowid"
        " WHERE episodes_text MATCH ? AND e.butler = ? ORDER BY bm25(episodes_text), e.number DESC LIMIT ?",
        (question, butler, episodes),
    )
    if not rows:
        return None
    share = characters // len(rows)
    entries = [_entry(row["created_at"], row["prompt"], row["output"], share) for row in rows]
    return "\n\n".join([HEADING, *entries])


def _any_word_of(text: str) -> str:
    """An FTS5 query; each word is quoted, so that nothing in a prompt is read as an operator."""
    words = dict.fromkeys(word.lower() for word in WORD.findall(text))
    telling = [word for word in words if word not in SAYS_NOTHING]
    return " OR ".join(f'"{word}"' for word in telling[:MOST_WORDS])


def _entry(at: float, prompt: str, output: str, share: int) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(at))
    return f"{day}, asked: {_short(prompt, share // 4)}\n{_short(output, share)}"


def _short(text: str, limit: int) -> str:
    text = text.strip()
    return text if len(text) <= limit else text[:limit].rstrip() + " …"


def _store(database: Database, values: tuple[str, str, str, str, float]) -> None:
    database.write(
        "INSERT INTO episodes (butler, session_id, prompt, output, created_at) VALUES (?, ?, ?, ?, ?)", values
    )
