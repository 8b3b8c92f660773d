"""The packaged reader: its weights, how its training text is made and how it was trained."""
