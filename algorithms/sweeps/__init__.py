"""Sweeps: many training runs, planned, run on Ray, and summarised."""
