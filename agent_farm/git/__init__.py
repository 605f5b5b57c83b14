"""The only room that talks to git.

Commands that must be fast, such as `af spawn` and `af status`, call the git program directly, in as few
processes as possible. The few other places use GitPython, opened for one call and closed.
"""
