"""Compiled loops of posteriors of releases."""
