"""The tables of butler.db, one script per version; a script that has landed is never edited."""

from __future__ import annotations

MIGRATIONS = (
    """
    CREATE TABLE sessions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        butler TEXT NOT NULL,
        owner TEXT NOT NULL,
        parent TEXT,
        state TEXT NOT NULL CHECK (state IN
            ('queued', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
        trigger_source TEXT NOT NULL,
        prompt TEXT NOT NULL,
        context TEXT,
        runtime TEXT NOT NULL,
        model TEXT,
        cwd TEXT,
        max_turns INTEGER NOT NULL,
        trace_id TEXT,
        conversation_id TEXT,
        output TEXT,
        error TEXT,
        success INTEGER,
        tool_calls TEXT,
        duration REAL,
        input_tokens INTEGER,
        output_tokens INTEGER,
        cached_tokens INTEGER,
        cost REAL,
        created_at REAL NOT NULL,
        started_at REAL,
        ended_at REAL
    );
    CREATE INDEX sessions_by_state ON sessions (state);
    CREATE TABLE served_calls (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        caller TEXT NOT NULL,
        name TEXT NOT NULL,
        input TEXT NOT NULL,
        result TEXT,
        failed INTEGER NOT NULL,
        at REAL NOT NULL,
        seconds REAL NOT NULL
    );
    CREATE INDEX served_calls_by_caller ON served_calls (caller);
    CREATE TABLE state (
        butler TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        updated_at REAL NOT NULL,
        PRIMARY KEY (butler, key)
    );
    CREATE TABLE credentials (
        name TEXT PRIMARY KEY,
        value BLOB NOT NULL,
        updated_at REAL NOT NULL
    );
    CREATE TABLE schedules (
        butler TEXT NOT NULL,
        name TEXT NOT NULL,
        cron TEXT NOT NULL,
        prompt TEXT NOT NULL,
        timezone TEXT,
        enabled INTEGER NOT NULL,
        origin TEXT NOT NULL CHECK (origin IN ('file', 'tool')),
        created_at REAL NOT NULL,
        looked_until REAL NOT NULL,
        PRIMARY KEY (butler, name)
    );
    CREATE TABLE fires (
        butler TEXT NOT NULL,
        schedule TEXT NOT NULL,
        due REAL NOT NULL,
        claimed_at REAL NOT NULL,
        outcome TEXT NOT NULL,
        PRIMARY KEY (butler, schedule, due)
    );
    CREATE TABLE episodes (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        butler TEXT NOT NULL,
        session_id TEXT NOT NULL,
        prompt TEXT NOT NULL,
        output TEXT NOT NULL,
        created_at REAL NOT NULL
    );
    CREATE VIRTUAL TABLE episodes_text USING fts5 (
        prompt, output, content='episodes', content_rowid='number', tokenize='porter unicode61'
    );
    CREATE TRIGGER episodes_added AFTER INSERT ON episodes BEGIN
        INSERT INTO episodes_text (rowid, prompt, output) VALUES (new.number, new.prompt, new.output);
    END;
    CREATE TRIGGER episodes_removed AFTER DELETE ON episodes BEGIN
        INSERT INTO episodes_text (episodes_text, rowid, prompt, output)
        VALUES ('delete', old.number, old.prompt, old.output);
    END;
    """,
    """
    ALTER TABLE sessions ADD COLUMN failure TEXT;
    """,
    """
    ALTER TABLE sessions ADD COLUMN resumes TEXT;
    ALTER TABLE sessions ADD COLUMN home TEXT;
    ALTER TABLE sessions ADD COLUMN stop_asked TEXT;
    CREATE INDEX sessions_by_created ON sessions (created_at);
    ALTER TABLE schedules ADD COLUMN cwd TEXT;
    ALTER TABLE schedules ADD COLUMN late REAL NOT NULL DEFAULT 3600;
    ALTER TABLE schedules ADD COLUMN until TEXT;
    ALTER TABLE state ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
    INSERT INTO counters VALUES ('state', 1);
    """,
    """
    ALTER TABLE sessions DROP COLUMN owner;
    ALTER TABLE sessions DROP COLUMN stop_asked;
    ALTER TABLE sessions ADD COLUMN permissions TEXT;
    ALTER TABLE sessions ADD COLUMN timeout REAL;
    ALTER TABLE sessions ADD COLUMN checkout TEXT;
    CREATE INDEX sessions_by_ended ON sessions (butler, ended_at);
    CREATE INDEX fires_by_due ON fires (due);
    """,
    """
    ALTER TABLE sessions ADD COLUMN host TEXT;
    ALTER TABLE sessions ADD COLUMN for_home INTEGER NOT NULL DEFAULT 0;
    """,
)
