"""Posteriors of latent counts: what an analyst may conclude from released cells, records or noisy counts."""
