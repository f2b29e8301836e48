"""Markov chains: how they are run, and the building blocks that several of them use."""
