"""Compiled loops of the exact laws of privacy loss."""
