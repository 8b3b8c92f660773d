"""What is made of a question set: splits, folds, gold paths and forms, noise."""
