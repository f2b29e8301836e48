"""Statements and recipes of the papers, kept for comparison with the package: no command and no public name needs them."""
