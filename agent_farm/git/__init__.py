"""The only room that talks to git.

Commands that must be fast, such as `af spawn` and `af status`, call the git program directly, in as few
processes as possible; GitPython, opened for one call and closed, reads references where speed does not
matter.

Two questions about a session's own tree are asked in `runtimes/`, since edges do not import each other: who
commits there (`worktree_facts.py`), and which files the session of a shipped executable changed
(`executables/artifacts.py`).
"""
