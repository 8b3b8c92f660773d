"""Question files as we read and write them."""
