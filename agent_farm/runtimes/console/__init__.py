"""What our programs in a pane share: an input line on a plain terminal, and hooks; standard library only."""
