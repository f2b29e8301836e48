"""Figures for the data at hand: confidential, never a guarantee."""
