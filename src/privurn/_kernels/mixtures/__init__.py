"""Compiled loops of mixtures from privatised data: records say what, generic functions say how, one file each sampler."""
