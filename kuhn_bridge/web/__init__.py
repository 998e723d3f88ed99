"""The browser face: a static page in plain ES modules, and what holds its engine to the core."""
