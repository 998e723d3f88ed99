"""Kuhn poker in a browser: a static page in plain ES modules, and a check of its engine."""
