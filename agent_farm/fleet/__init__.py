"""Builders on other machines: who is where, and how one machine is asked."""
