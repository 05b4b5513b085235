"""What a notebook holds."""
