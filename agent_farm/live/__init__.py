"""Follows builders as they change, for the browsers and terminals that show them."""
