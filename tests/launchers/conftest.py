"""Clusters on this machine, started once for the tests that use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.launchers.two_raylets import Cluster, two_raylets


@pytest.fixture(scope="session")
def raylets() -> Iterator[Cluster]:
    """Two nodes of Ray, on loopback."""
    with two_raylets() as cluster:
        yield cluster
