"""Release mechanisms: frozen data that knows its guarantee and how to apply itself to counts."""
