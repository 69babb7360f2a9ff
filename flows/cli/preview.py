"""The plan that a command would compute. The dataset is brought up to date once: by the flow if one follows, else
here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.corpora.settings.runtime import load_runtime
from pipelines.lineage.store import Store
from pipelines.recipe.plan import Plan, Step
from tasks.datasets.lock import prepare_in_turn, shared_data_lock
from tasks.datasets.looking import look_at_new_sources
from tasks.datasets.planning import Request, make_plan
from tasks.datasets.prepared import Prepared, last_prepared, open_prepared
from tasks.launchers.settings import load_training


@dataclass(frozen=True)
class PlanPreview:
    """A plan over a dataset, and which of its steps are in the store."""

    prepared: Prepared
    plan: Plan
    stored: set[str]

    @property
    def todo(self) -> list[Step]:
        """The steps that are not in the store."""
        return self.plan.missing(self.stored)


class Previewer:
    """Plans `request`, or the part of it up to the stage `until`. `notify` receives messages of the data
    preparation."""

    def __init__(
        self, root: Path, request: Request, store: Store, notify: Callable[[str], None], until: str | None = None
    ) -> None:
        self.root, self.request, self.store, self.notify, self.until = root, request, store, notify, until
        # report errors in settings now, not when the data is prepared
        load_runtime(root)
        load_training(root)

    def before(self, *, only: bool = False) -> PlanPreview:
        """The plan before a flow. If nothing is to be computed, or with `only` (no flow follows), the data is brought
        up to date first; otherwise it may be out of date, and the flow brings it up to date."""
        others = [self.request.judged_on] if self.request.judged_on is not None else []
        last = last_prepared(self.request.dataset, self.root)
        known = last is not None and all(last_prepared(one, self.root) is not None for one in others)
        preview = self._over(last) if last is not None and known else None
        if preview is not None and preview.todo and not only:
            for one in (self.request.dataset, *others):
                look_at_new_sources(one, self.root)  # the flow looks at them after seconds of starting
            return preview
        for one in others:
            self._prepare(one)
        prepared = self._prepare(self.request.dataset)
        unchanged = preview is not None and not others and preview.prepared == prepared
        return preview if preview is not None and unchanged else self._over(prepared)

    def _prepare(self, dataset: str) -> Prepared:
        return prepare_in_turn(dataset, self.root, lambda step: self.notify(f"  {step}"), self.notify)

    def after(self, preview: PlanPreview) -> PlanPreview:
        """The plan after a flow, on the data as the flow left it."""
        with shared_data_lock(self.request.dataset, self.root, self.notify):
            now = open_prepared(self.request.dataset, self.root)
        return preview if now.digests == preview.prepared.digests else self._over(now)

    def _over(self, prepared: Prepared) -> PlanPreview:
        plan = make_plan(self.root, self.request, prepared)
        if self.until is not None:
            plan = plan.ancestors(self.until)
        return PlanPreview(
            prepared, plan, {step.fingerprint for step in plan.steps if self.store.get(step.fingerprint)}
        )
