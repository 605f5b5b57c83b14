"""A plain terminal with an input line, for the programs of ours that run in a pane; standard library only."""
