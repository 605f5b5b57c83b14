"""Which of several builders with the same task got it right, judged by tests alone."""
