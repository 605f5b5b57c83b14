"""What a machine does for the farm that placed builders on it, its home."""
