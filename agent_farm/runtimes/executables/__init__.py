"""The adapter executables that af ships: background sessions, in which each turn is a runtime's headless run.

    spawn BRIEF STATE PROMPT      prints the session id
    resume ID STATE PROMPT        prints "resumed ID"
    check_status ID               prints pending, active, completed or failed

Exit codes: 0 done · 1 failed · 2 wrong arguments · 3 no such session · 4 the CLI is not installed · 5 the
session is still at work. Messages about failures go to standard error.
"""
