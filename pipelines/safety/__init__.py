"""Checks and redaction that never affect a computed result."""
