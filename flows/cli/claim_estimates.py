"""The claims of a campaign with the time that each will take, before any data is prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pipelines.errors import CursusError
from pipelines.lineage.store import Store
from tasks.datasets.claim_requests import ClaimRequest
from tasks.datasets.planning import Request, make_plan, store_folder
from tasks.datasets.prepared import Prepared, last_prepared
from tasks.estimates.duration import estimate_run
from tasks.estimates.expected_data import expected_data, preparation_seconds
from tasks.records.outstanding import EstimatedClaim, Failure, OutstandingClaim


def estimate_claims(
    root: Path, outstanding: Sequence[OutstandingClaim], threads: int, on_progress: Callable[[int], None]
) -> tuple[list[EstimatedClaim], list[Failure]]:
    """The claims with estimates, cheapest first, and those that cannot be planned.

    Nothing is prepared or computed: steps are planned over the last prepared state of a dataset, or else over tables of
    the sizes that its settings suggest. `on_progress` receives the number of claims that are estimated.
    """
    estimator = _Estimator(root, threads)
    planned, failures = [], []
    for number, claim in enumerate(outstanding, 1):
        try:
            planned.append(estimator.estimate(claim))
        except CursusError as error:
            failures.append(Failure(claim, str(error)))
        on_progress(number)
    return sorted(planned, key=lambda one: one.seconds), failures


class _Estimator:
    def __init__(self, root: Path, threads: int) -> None:
        self.root, self.threads = root, threads
        store = Store(store_folder(root))
        # not `Store.get`, which reads every artifact: what is damaged is seen when it is used
        self.stored, self.records = store.fingerprints(), list(store.all())
        self.data: dict[str, Prepared] = {}
        self.preparations: dict[str, float] = {}

    def estimate(self, claim: OutstandingClaim) -> EstimatedClaim:
        requested = ClaimRequest.resolve(self.root, claim.name, claim.data, claim.variants)
        steps: dict[str, float] = {}
        for request in _requests(self.root, requested):
            judged = self._data(request.judged_on) if request.judged_on is not None else None
            prepared = self._data(request.dataset)
            plan = make_plan(self.root, request, prepared, judged)
            estimate = estimate_run(self.root, plan, prepared, self.stored, self.records, self.threads)
            missing = plan.missing(self.stored)
            steps |= {one.fingerprint: estimate.steps[one.fingerprint].seconds for one in missing}
        datasets = {name for part in requested.parts for name in (part.trained, part.judged)}
        preparations = {name: self.preparations[name] for name in sorted(datasets & self.preparations.keys())}
        return EstimatedClaim(claim, steps, preparations)

    def _data(self, dataset: str) -> Prepared:
        """The last prepared state of a dataset, or what is expected of it. Raises DataError for a missing source."""
        if dataset not in self.data:
            last = last_prepared(dataset, self.root)
            if last is None:
                last = expected_data(dataset, self.root)
                self.preparations[dataset] = preparation_seconds(last)
            self.data[dataset] = last
        return self.data[dataset]


def _requests(root: Path, requested: ClaimRequest) -> Iterator[Request]:
    """What is trained and judged for each part of a claim, and the search over its grid."""
    for part in requested.parts:
        yield requested.of_part(root, part)
        if requested.claim.tune:
            yield requested.grid(root, part)
