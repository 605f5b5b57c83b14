"""The only room that talks to ssh."""
