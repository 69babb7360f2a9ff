"""The forms of claims."""
