"""Trains the head start of the label parser; offline, and imported by nothing."""
