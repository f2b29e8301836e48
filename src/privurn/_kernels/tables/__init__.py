"""Counts of whole tables by sets of columns."""
