"""What people read: comparisons, pictures, pages."""
