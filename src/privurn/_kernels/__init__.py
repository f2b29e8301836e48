"""Compiled inner loops: numbers in, numbers out.

Nothing here validates its input or knows what a data frame, a domain or a guarantee is; the Python layers above do.
Greek letters are allowed inside kernels only, with a table of symbols at the top of each module.
"""
