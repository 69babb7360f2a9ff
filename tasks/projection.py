"""MLflow rebuilt from the store: what it missed, because it was away, was deleted or is new, is told from the records."""

from __future__ import annotations

from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from tasks.tracking import Tracker, survives

PAGE = 1000


class Projection:
    """Tells MLflow, through `tracker`, of what is in `store`. Telling a thing twice changes nothing."""

    def __init__(self, tracker: Tracker, store: Store) -> None:
        self.recorder = tracker.recorder
        self.store = store
        self.failure = tracker.failure

    def project(self, fingerprint: str) -> str | None:
        """The run of one artifact, recorded now where it was not; None where MLflow does not answer.

        Raises StoreError where there is no such artifact.
        """
        return self._tell(Provenance.read(self.store.root / fingerprint))

    @survives
    def replay(self) -> int:
        """Record every artifact that MLflow does not tell of, parents first; how many those were.

        One question to MLflow and one record read per artifact where nothing is missing.
        """
        told = self._told()
        missing = [provenance for provenance in self.store.all() if provenance.fingerprint not in told]
        for provenance in missing:
            self.recorder.record(provenance, self.store.root / provenance.fingerprint)
        return len(missing)

    @survives
    def _tell(self, provenance: Provenance) -> str:
        found = self.recorder.recorded(provenance.fingerprint)
        return found or self.recorder.record(provenance, self.store.root / provenance.fingerprint)

    def _told(self) -> set[str]:
        found: set[str] = set()
        token = None
        while True:
            page = self.recorder.client.search_runs(
                self.recorder.experiments(),
                "tags.`cursus.cached` = 'false' and attributes.status = 'FINISHED'",
                max_results=PAGE,
                page_token=token,
            )
            found |= {run.data.tags["cursus.fingerprint"] for run in page}
            token = page.token
            if not token:
                return found
