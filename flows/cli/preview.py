"""What a command would compute. The data is looked at once: by the flow where one follows, else here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.lineage.store import Store
from pipelines.recipe.plan import Plan, Step
from tasks.datasets.lock import prepare_in_turn
from tasks.datasets.planning import Request, make_plan
from tasks.datasets.prepared import Prepared, last_prepared, open_prepared


@dataclass(frozen=True)
class Looked:
    """A plan over a dataset, and which of its steps are in the store."""

    prepared: Prepared
    plan: Plan
    stored: set[str]

    @property
    def todo(self) -> list[Step]:
        """The steps that are not."""
        return self.plan.missing(self.stored)


class Looking:
    """At what `request` asks for, or the part of it up to the stage `until`. `say` hears how the data is prepared."""

    def __init__(
        self, root: Path, request: Request, store: Store, say: Callable[[str], None], until: str | None = None
    ) -> None:
        self.root, self.request, self.store, self.say, self.until = root, request, store, say, until

    def before(self, *, only: bool = False) -> Looked:
        """What is to be done. Where that is nothing, or nothing but to look is wanted, the data is brought up to date first;
        otherwise it may be out of date, and the flow that computes brings it up to date."""
        last = last_prepared(self.request.dataset, self.root)
        looked = self._over(last) if last is not None else None
        if looked is not None and looked.todo and not only:
            return looked
        return self._over(
            prepare_in_turn(self.request.dataset, self.root, lambda step: self.say(f"  {step}"), self.say)
        )

    def after(self, looked: Looked) -> Looked:
        """What a flow has left behind, on the data as it is now."""
        now = open_prepared(self.request.dataset, self.root)
        return looked if now.digests == looked.prepared.digests else self._over(now)

    def _over(self, prepared: Prepared) -> Looked:
        plan = make_plan(self.root, self.request, prepared)
        if self.until is not None:
            plan = plan.ancestors(self.until)
        return Looked(prepared, plan, {step.fingerprint for step in plan.steps if self.store.get(step.fingerprint)})
