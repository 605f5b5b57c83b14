"""What `af doctor` looks for, by what it is about."""
