"""Compiled loops over trees of counts: messages on lattices, chains, balanced rounding."""
