"""Games that are too large for a tree and are measured exactly without one."""
