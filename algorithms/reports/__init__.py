"""Reports: one policy or several as a self-contained HTML page, to read and to play against."""
