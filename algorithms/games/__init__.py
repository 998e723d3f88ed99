"""Games: a tree, what is seen at each information set, and names."""
