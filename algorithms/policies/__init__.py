"""Policies of games: by name, from files, from OpenSpiel, from networks."""
