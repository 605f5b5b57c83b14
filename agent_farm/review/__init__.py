"""Reviewing builders' work: what of it a person has read, what is new since, and what they said about it."""
