"""How builders' work lands: which work, on which branch, and what is checked before."""
