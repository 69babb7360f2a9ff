"""The steps that MLflow has recorded as finished runs, and the executions that it has runs of."""

from __future__ import annotations

from tasks.servers.tracking_database import is_database
from tasks.tracking.recorder import Recorder

PAGE = 1000
_EXECUTIONS = """
    SELECT execution.value FROM runs
    JOIN experiments ON experiments.experiment_id = runs.experiment_id AND experiments.lifecycle_stage = 'active'
    JOIN tags AS execution ON execution.run_uuid = runs.run_uuid AND execution.key = 'cursus.execution'
    LEFT JOIN tags AS parent ON parent.run_uuid = runs.run_uuid AND parent.key = 'mlflow.parentRunId'
    WHERE runs.lifecycle_stage = 'active' AND parent.value IS NULL
"""
_FINISHED_RUNS = """
    SELECT made.value FROM runs
    JOIN experiments ON experiments.experiment_id = runs.experiment_id AND experiments.lifecycle_stage = 'active'
    JOIN tags AS made ON made.run_uuid = runs.run_uuid AND made.key = 'cursus.fingerprint'
    JOIN tags AS cached ON cached.run_uuid = runs.run_uuid AND cached.key = 'cursus.cached' AND cached.value = 'false'
    WHERE runs.status = 'FINISHED' AND runs.lifecycle_stage = 'active'
"""


def recorded_fingerprints(recorder: Recorder) -> set[str]:
    """Fingerprints of the steps whose finished run MLflow has. Raises what MLflow raises."""
    return query_database(recorder) if is_database(recorder.uri) else query_server(recorder)


def query_database(recorder: Recorder) -> set[str]:
    """Query the database directly.

    MLflow would return every parameter, metric and tag of each run, which takes a second for a thousand runs.
    """
    return _values(recorder, _FINISHED_RUNS)


def recorded_executions(recorder: Recorder) -> set[str]:
    """Ids of the executions that MLflow has a run of. Raises what MLflow raises."""
    if is_database(recorder.uri):
        return _values(recorder, _EXECUTIONS)
    runs = recorder.client.search_runs(recorder.experiments(), "tags.`cursus.execution` != ''", max_results=PAGE)
    tags = [run.data.tags for run in runs]
    return {known["cursus.execution"] for known in tags if "mlflow.parentRunId" not in known}


def _values(recorder: Recorder, query: str) -> set[str]:
    from sqlalchemy import create_engine, text

    assert recorder.client is not None  # creates the tables
    engine = create_engine(recorder.uri)
    try:
        with engine.connect() as connection:
            return set(connection.execute(text(query)).scalars())
    finally:
        engine.dispose()


def query_server(recorder: Recorder) -> set[str]:
    """Query MLflow's server, page by page."""
    fingerprints: set[str] = set()
    token = None
    while True:
        page = recorder.client.search_runs(
            recorder.experiments(),
            "tags.`cursus.cached` = 'false' and attributes.status = 'FINISHED'",
            max_results=PAGE,
            page_token=token,
        )
        fingerprints |= {run.data.tags["cursus.fingerprint"] for run in page}
        token = page.token
        if not token:
            return fingerprints
