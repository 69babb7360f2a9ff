"""Memory requirements of the processes of a data step."""

from __future__ import annotations

PARENT = 256 * 2**20
"""Bytes for the main process of a step: its libraries and the labelled set."""
CHILD = 320 * 2**20
"""Bytes for each worker process: its libraries, a row group to read and one to write."""
