"""Checks, redaction, and how a process begins and ends: nothing here affects a computed result."""
