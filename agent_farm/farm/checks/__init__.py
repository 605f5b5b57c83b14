"""What `af doctor` checks, by subject."""
