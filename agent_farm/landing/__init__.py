"""How what builders made comes home: which work, to which place, looked at by whom."""
