"""One reader per graph format, behind the interface of `base`."""
