"""Samples of what the machine does while a step trains: processor, memory, disk, network, GPU where there is one."""

from __future__ import annotations

import logging
from typing import Any

SAMPLE_EVERY = 5.0
"""Seconds between two samples. One more is taken at the end, so that the shortest step has one as well."""


class Sampler:
    """MLflow's own monitor, sampling into the run `run_id` from now until `stop`.

    The figures are of the whole machine: the step trains in a process of its own.
    """

    def __init__(self, run_id: str, tracking_uri: str) -> None:
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        # it reports every run it watches, and its own troubles, to the console
        logging.getLogger("mlflow.system_metrics").setLevel(logging.CRITICAL)
        untyped: Any = SystemMetricsMonitor
        self._monitor: Any = untyped(run_id, sampling_interval=SAMPLE_EVERY, tracking_uri=tracking_uri)
        self._monitor.start()

    def stop(self) -> None:
        """End sampling; the run is still open and gets a last sample."""
        self._monitor.finish()
        self._monitor.collect_metrics()
        self._monitor.publish_metrics(self._monitor.aggregate_metrics())
        self._monitor.mlflow_logger.flush()
