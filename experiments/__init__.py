"""The papers' tables and figures, one file each, with the exact value beside every estimate."""
