"""Benchmarks: ratios to what the bare tools take in the same run, never absolute limits."""
