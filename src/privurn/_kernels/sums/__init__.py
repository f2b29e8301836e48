"""Compiled chains for inference from noisy sums over latent records."""
