"""What runs on the game: solvers, measures, training and their commands."""
