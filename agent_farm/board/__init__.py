"""`af board`: all builders in one screen, looked at and acted on in place."""
