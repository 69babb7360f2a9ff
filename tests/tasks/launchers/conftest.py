"""Clusters on this machine, started once for the tests that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.lineage.provenance import DataSource
from pipelines.recipe.job import Job
from tasks.launchers import slurm
from tests.pipelines.training.small_recipe import GENERAL
from tests.steps import job_of, library_of, plan_of
from tests.tasks.launchers.slurm_cluster import Cluster as SlurmCluster
from tests.tasks.launchers.slurm_cluster import missing
from tests.tasks.launchers.slurm_jobs import FOLDER, RUNTIME
from tests.tasks.launchers.two_raylets import Cluster, two_raylets


@pytest.fixture(scope="session")
def raylets() -> Iterator[Cluster]:
    """Two nodes of Ray, on loopback."""
    with two_raylets() as cluster:
        yield cluster


@pytest.fixture(scope="package")
def slurm_cluster() -> Iterator[SlurmCluster]:
    if reason := missing():
        pytest.skip(reason)
    with SlurmCluster() as started, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(started.configuration))
        patch.setattr(slurm, "POLL_SECONDS", 0.5)
        patch.setattr(slurm, "END_POLL_SECONDS", 0.2)
        yield started


@pytest.fixture(scope="session")
def make_job(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Job]:
    """A job of a few seconds, writing into a folder of its own."""
    recipes = tmp_path_factory.mktemp("recipes")
    (step,) = plan_of(library_of(recipes, small=GENERAL), "small", sources).steps

    def make() -> Job:
        return job_of(step, {}, tables, tmp_path_factory.mktemp("job") / FOLDER, RUNTIME)

    return make
