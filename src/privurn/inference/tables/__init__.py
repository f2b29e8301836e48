"""Whole tables behind noisy marginals: a mixture of products, synthetic records, and estimates with intervals."""
