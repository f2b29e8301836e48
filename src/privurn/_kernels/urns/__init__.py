"""Compiled loops that draw from urns, in exact integers."""
