"""Which of several builders with the same task did it right: by what tests say, and nothing else."""
