"""Many training runs: a plan of them, Ray to run them, and results that people use."""
