"""Noisy sums over records, with n public or secret: the mechanisms that publish statistics a model can be inferred from."""
