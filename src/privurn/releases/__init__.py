"""From confidential data and a guarantee to what is published."""
