"""Limits how many builds run on this machine at once, whoever's builders started them."""
