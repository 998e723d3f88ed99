"""Used by all other packages: errors, files, progress, compilation, random numbers."""
