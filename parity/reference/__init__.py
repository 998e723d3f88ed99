"""Slow, obvious implementations to compare with."""
