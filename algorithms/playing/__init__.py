"""Playing against a person: opponents in a player's words, the browser page, the terminal."""
