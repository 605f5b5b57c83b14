"""The demo agent's own process: standard library only, so that it starts in a few hundredths of a second.

It is run by path (`python -I -S …/demo_agent/__main__.py`), and never imported by the rest of the package.
"""
