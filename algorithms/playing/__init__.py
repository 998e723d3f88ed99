"""Play against a person: opponents, the browser page, the terminal."""
