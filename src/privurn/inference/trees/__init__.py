"""Polya-tree posteriors given noisy counts of a tree's nodes, and records made from them."""
