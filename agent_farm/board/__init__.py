"""`af board`: all builders on one screen, with actions in place."""
