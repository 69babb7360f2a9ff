"""Figures of a model's server in the format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServerMetrics:
    """Counters of one server; a registry of their own, so that a process may have several."""

    def __init__(self, model: str, fingerprint: str) -> None:
        self._registry = CollectorRegistry()
        info = Gauge("cursus_model_info", "The served model.", ["model", "fingerprint"], registry=self._registry)
        info.labels(model, fingerprint).set(1)
        self.requests = Counter(
            "cursus_requests", "Requests for predictions, by status.", ["status"], registry=self._registry
        )
        self.predictions = Counter("cursus_predictions", "Examples that were answered.", registry=self._registry)
        self.seconds = Histogram(
            "cursus_request_seconds", "Time of a request.", buckets=LATENCIES, registry=self._registry
        )
        self.batches = Histogram(
            "cursus_batch_examples", "Examples of a computed batch.", buckets=SIZES, registry=self._registry
        )

    def page(self) -> bytes:
        """All figures as text."""
        return generate_latest(self._registry)
