"""How much memory the processes of a data step need."""

from __future__ import annotations

PARENT = 256 * 2**20
"""Bytes that the process of a step itself needs: its libraries and the labelled set."""
CHILD = 320 * 2**20
"""Bytes that each further process needs: its libraries, a group of rows to read and one to write."""
