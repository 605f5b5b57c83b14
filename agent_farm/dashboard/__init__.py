"""The web door: all builders and sessions in the browser, live. `app.dashboard_app(root)` is the way in."""
