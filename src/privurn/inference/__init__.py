"""What may be concluded from what was published."""
