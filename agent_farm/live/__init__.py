"""Builders as they change: browsers and terminals that show them are told at once."""
