"""Headless sessions: their queue and records, and what their butlers keep from one to the next."""
