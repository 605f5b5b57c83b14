"""How builders' work lands: which work, where, and who reviews it."""
