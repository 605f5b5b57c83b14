"""The demo agent's own process: standard library only, so that it starts in a few hundredths of a second.

It is started by path (`python -I -S …/demo_agent/__main__.py`), never imported by the rest of the package.
"""
