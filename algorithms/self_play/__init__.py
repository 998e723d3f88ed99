"""Self-play: environments, networks, training runs."""
