"""Attacks on whatever draws outputs: it is handed mechanisms and imports none."""
