"""The only room that talks to git.

What `af spawn` and `af status` need calls the program directly, in as few processes as possible;
the rare rest goes through GitPython, opened per call and closed.
"""
