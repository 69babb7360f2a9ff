"""`python -m tests.faults.steps_of_a_store FOLDER`: a small recipe's steps, launcher and store, no servers.

What is in the store is not computed again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pipelines.errors import CursusError
from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.lineage.results import Result
from pipelines.lineage.store import Store
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.load import Library
from pipelines.recipe.plan import Step
from tasks.launchers.local import LocalLauncher
from tests.steps import ROOT, job_of, plan_of

TABLES = ("general", "domain", "task_text", "train", "validation", "test")


class Publisher:
    """Publishes a finished step, as the flow does."""

    def __init__(self, store: Store, step: Step) -> None:
        self.store, self.step = store, step

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None: ...

    def finished(self, job: Job, result: Result) -> None:
        environment = Environment(
            python="3", platform="", packages={}, commit=None, started="2026-01-01T00:00:00",
            seconds=1.0, resumed_from_step=result.resumed_from_step,
        )  # fmt: skip
        self.store.publish(
            Provenance(
                fingerprint=self.step.fingerprint, recipe=self.step.recipe, stage=self.step.name,
                kind=str(self.step.stage.kind), seed=self.step.seed, identity=dict(self.step.identity),
                parents=dict(self.step.parents), data=dict(self.step.data), files={},
                result=result.model_dump(exclude={"resumed_from_step", "passed_over"}), environment=environment,
            )
        )  # fmt: skip


def main(root: Path) -> int:
    """Compute what is missing. `error: …` and 2 for what a user can mend."""
    store = Store(root / "data" / "store")
    tables = {name: root.parent / "tables" / f"{name}.parquet" for name in TABLES}
    sources = {name: DataSource(digest=f"{n:032x}", path=f"tables/{name}") for n, name in enumerate(tables)}
    plan = plan_of(Library(root.parent / "recipes"), "small", sources)
    folders = {step.fingerprint: store.root / step.fingerprint for step in plan.steps}
    try:
        missing = [step for step in plan.steps if store.get(step.fingerprint) is None]
        with LocalLauncher().open(ROOT, root / "log") as launcher:
            for step in missing:
                claim = store.claim(step.fingerprint)
                assert claim is not None
                if store.get(step.fingerprint) is None:
                    runtime = Runtime(log_every=7, checkpoint_every=9)
                    job = job_of(step, folders, tables, store.workspace(step.fingerprint), runtime)
                    launcher.run(job.model_copy(update={"cache": store.tokens}), Publisher(store, step))
                claim.release(delete=True)
    except CursusError as error:
        print(f"error: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
