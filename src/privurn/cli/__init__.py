"""Command line: parse, call the library, print. No mathematics here."""
