"""Builders as they change: who looks at them, in a browser or a terminal, is told at once."""
