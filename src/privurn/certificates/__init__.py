"""What a release says of itself: made, written, read back and recomputed."""
