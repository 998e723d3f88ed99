"""Phantom games on a small board, measured and solved exactly without a tree."""
