"""What everything else stands on: errors, files, progress, compilation, random numbers."""
