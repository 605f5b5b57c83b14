"""What a machine does for the one that placed builders on it."""
