"""System metrics while a step trains: processor, memory, disk, network, and GPU if there is one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SAMPLE_EVERY = 5.0
"""Seconds between two samples. One more is taken at the end, so that the shortest step has one as well."""


class Sampler:
    """Samples MLflow's own monitors until `stop`, and passes each sample to `on_sample`: MLflow's name (`system/…`) to
    figure.

    The figures are of the whole machine: the step trains in a process of its own. MLflow's own sampling loop is not
    used: it ends for good at the first request that the server does not answer.
    """

    def __init__(self, on_sample: Callable[[dict[str, float]], None]) -> None:
        self._on_sample = on_sample
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="cursus-samples", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take the last sample and end the thread."""
        self._stopped.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            monitors = _monitors()
            done = False
            while not done:
                done = self._stopped.wait(SAMPLE_EVERY)
                figures: dict[str, float] = {}
                for monitor in monitors:
                    monitor.collect_metrics()
                    figures |= {f"system/{name}": float(value) for name, value in monitor.aggregate_metrics().items()}
                    monitor.clear_metrics()
                self._on_sample(figures)
        except Exception:  # training does not depend on system metrics
            logging.getLogger("cursus.tracking").debug("no system metrics", exc_info=True)


def _monitors() -> list[Any]:
    from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
    from mlflow.system_metrics.metrics.disk_monitor import DiskMonitor
    from mlflow.system_metrics.metrics.gpu_monitor import GPUMonitor
    from mlflow.system_metrics.metrics.network_monitor import NetworkMonitor

    kinds: list[Any] = [CPUMonitor, DiskMonitor, NetworkMonitor]
    monitors = [kind() for kind in kinds]
    with suppress(Exception):  # no GPU, or no library to query it
        untyped: Any = GPUMonitor
        monitors.append(untyped())
    return monitors
