"""Which steps MLflow tells of."""

from __future__ import annotations

from tasks.servers.tracking_database import is_database
from tasks.tracking.recorder import Recorder

PAGE = 1000
_TOLD = """
    SELECT made.value FROM runs
    JOIN experiments ON experiments.experiment_id = runs.experiment_id AND experiments.lifecycle_stage = 'active'
    JOIN tags AS made ON made.run_uuid = runs.run_uuid AND made.key = 'cursus.fingerprint'
    JOIN tags AS cached ON cached.run_uuid = runs.run_uuid AND cached.key = 'cursus.cached' AND cached.value = 'false'
    WHERE runs.status = 'FINISHED' AND runs.lifecycle_stage = 'active'
"""


def told_steps(recorder: Recorder) -> set[str]:
    """Fingerprints of the steps of which MLflow has the finished run that computed them. Raises what MLflow raises."""
    return of_database(recorder) if is_database(recorder.uri) else of_server(recorder)


def of_database(recorder: Recorder) -> set[str]:
    """Asked of the database itself: MLflow would bring every parameter, metric and tag of each run, a second for a thousand."""
    from sqlalchemy import create_engine, text

    assert recorder.client is not None  # the tables are there
    engine = create_engine(recorder.uri)
    try:
        with engine.connect() as connection:
            return set(connection.execute(text(_TOLD)).scalars())
    finally:
        engine.dispose()


def of_server(recorder: Recorder) -> set[str]:
    """Asked of MLflow, page by page."""
    found: set[str] = set()
    token = None
    while True:
        page = recorder.client.search_runs(
            recorder.experiments(),
            "tags.`cursus.cached` = 'false' and attributes.status = 'FINISHED'",
            max_results=PAGE,
            page_token=token,
        )
        found |= {run.data.tags["cursus.fingerprint"] for run in page}
        token = page.token
        if not token:
            return found
