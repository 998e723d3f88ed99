"""Self-play: environments, networks, recipes, training."""
