"""Builders on other machines: which builder is where, and how a machine is called."""
