"""A database is asked directly for what MLflow itself would answer."""

from __future__ import annotations

from pathlib import Path

from tasks.tracking.backfill import TrackingBackfill
from tasks.tracking.recorded_steps import query_database, query_server, recorded_fingerprints
from tasks.tracking.recorder import Recorder
from tests.tasks.conftest import Builder


def test_a_database_is_asked_for_what_a_server_would_answer(root: Path, builder: Builder) -> None:
    made, recorder = builder.regime(), Recorder(root)
    assert query_database(recorder) == query_server(recorder) == set()
    assert TrackingBackfill(recorder, builder.store).record_missing() == len(made)
    every = {one.fingerprint for one in made.values()}
    assert recorded_fingerprints(recorder) == query_database(recorder) == query_server(recorder) == every

    client = recorder.client
    gone, failed, linked = (recorder.finished_run(made[name].fingerprint) for name in ("general", "small", "report"))
    assert gone is not None and failed is not None and linked is not None
    client.delete_run(gone)
    client.update_run(failed, "FAILED")
    client.set_tag(linked, "cursus.cached", "true")
    left = every - {made[name].fingerprint for name in ("general", "small", "report")}
    assert left and query_database(recorder) == query_server(recorder) == left

    for experiment in recorder.experiments():
        client.delete_experiment(experiment)
    assert query_database(recorder) == query_server(recorder) == set()
