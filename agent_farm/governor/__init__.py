"""Heavy work on this machine: so many builds at once, whoever's builders want them."""
