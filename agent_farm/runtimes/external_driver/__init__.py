"""The process that drives an external executable; standard library only, started by path."""
