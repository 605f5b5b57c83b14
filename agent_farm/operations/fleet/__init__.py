"""Verbs for builders on other machines."""
