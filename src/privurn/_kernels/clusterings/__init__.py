"""Loops over many clusterings of the same rows."""
