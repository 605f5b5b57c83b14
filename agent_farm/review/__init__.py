"""Reviewing what builders made: what of it was read, what is new since, and what was said of it."""
