"""What experiments write."""
