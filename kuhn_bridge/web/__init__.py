"""The browser face: a static page in plain ES modules, and a check of its engine."""
