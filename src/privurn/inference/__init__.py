"""Inference from published measurements: what they say about the confidential counts and the population."""
