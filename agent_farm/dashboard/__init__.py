"""The web door: all builders and sessions in the browser, live. `app.open_page(root)` is the way in."""
