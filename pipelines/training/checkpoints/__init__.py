"""Checkpoints of an interrupted stage, and the best weights of its validations."""
