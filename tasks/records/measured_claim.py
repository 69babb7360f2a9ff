"""A finished measurement of a claim: the samples of every side from the store, and their judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError
from pipelines.judging.claims import ClaimForm, ComparedSide
from pipelines.judging.claims.judgement import JudgedContrast, MeasuredSide, estimate, judge
from pipelines.judging.figures import STEP_FIGURES, RecordedFigure
from pipelines.judging.probes.stage import read_layer_samples
from pipelines.judging.samples import Samples, read_samples
from pipelines.lineage.store import Artifact, Store
from pipelines.recipe.claim import Claim
from pipelines.recipe.claims import COMPARISON, Measurement, figure_source, measurements
from pipelines.recipe.figures import recorded_figures
from pipelines.recipe.kinds import Kind
from pipelines.recipe.plan import Plan
from pipelines.recipe.problems import Setting
from pipelines.recipe.schema import Recipe
from pipelines.recipe.tables import setting_of
from tasks.datasets.prepared import Prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class MeasuredPart:
    """A part of a claim whose plan has been computed."""

    plan: Plan
    prepared: Prepared
    """The dataset on which its stages were trained."""
    judged: Prepared
    """The dataset on which they were judged."""


class MeasuredClaim:
    """A claim with all of its parts computed.

    Raises DataError when a comparison is not in the store.
    """

    def __init__(
        self, recipe: Recipe, name: str, claim: Claim, parts: Mapping[Measurement, MeasuredPart], store: Store
    ) -> None:
        self.recipe, self.name, self.claim, self.parts, self.store = recipe, name, claim, parts, store
        self.sides = measurements(recipe, claim)
        self.settings = {
            part: Setting(one.judged.family, one.judged.language, {}, one.judged.families)
            for part, one in parts.items()
        }
        self.sources = {
            part: figure_source(recipe, name, setting, part.stages) for part, setting in self.settings.items()
        }
        self.comparisons = {part: self._comparison(one) for part, one in parts.items()}
        self._samples = {part: self._read(part) for part in parts}

    @property
    def form(self) -> ClaimForm:
        return self.claim.form

    @property
    def figure(self) -> RecordedFigure:
        """The claim's figure, as the first part records it; its score may differ between task families."""
        return next(iter(self.sources.values())).figure

    @property
    def lower(self) -> bool:
        """Whether less of the figure is better."""
        return self.figure.lower if self.claim.lower is None else self.claim.lower

    @property
    def seed(self) -> int:
        """Seed of the resamples: that of the comparison."""
        return 0

    @cached_property
    def contrasts(self) -> list[JudgedContrast]:
        """The contrasts of the form on the claim's figure."""
        return self.judged(self.figure)

    def judged(self, figure: RecordedFigure) -> list[JudgedContrast]:
        """The contrasts of the form on any figure of the same judge."""
        lower = self.lower if figure.name == self.figure.name else figure.lower
        return judge(self.form, figure, lower, lambda side: self.measured(side, figure), self.seed)

    def measured(self, side: ComparedSide, figure: RecordedFigure) -> MeasuredSide:
        """The samples of a side's models."""
        part = self.sides[side]
        here = self._recorded(part)[figure.name]
        return MeasuredSide(self._samples[part][here.sample, side.stage], part.items, here.score)

    def estimate(self, side: ComparedSide, figure: RecordedFigure) -> dict[str, object]:
        """The record of a side's figure."""
        return estimate(figure, self.measured(side, figure), self.seed).record()

    @property
    def other_figures(self) -> list[RecordedFigure]:
        """The other figures of the same sample that every part has."""
        parts = [self._recorded(part) for part in self.parts]
        return [
            one
            for name, one in parts[0].items()
            if one.sample == self.figure.sample and one != self.figure and all(name in known for known in parts)
        ]

    def _recorded(self, part: Measurement) -> dict[str, RecordedFigure]:
        """The figures that the judge of a part records there."""
        source = self.sources[part]
        task = setting_of((part.task,) if part.task else (), self.settings[part])
        known = recorded_figures(task.family)
        return {name: judges[source.judge] for name, judges in known.items() if source.judge in judges}

    def trained(self, side: ComparedSide) -> list[Artifact]:
        """The artifacts of a side's models, seeds ascending."""
        steps = self.parts[self.sides[side]].plan.steps
        owner, _, name = side.stage.rpartition("/")
        own = [step for step in steps if (step.recipe, step.name) == (owner or self.recipe.name, name)]
        return [one for step in own if (one := self.store.get(step.fingerprint))]

    @property
    def everything(self) -> dict[str, Artifact]:
        """Every artifact of the measurement, by fingerprint."""
        steps = (step for part in self.parts.values() for step in part.plan.steps)
        return {one.fingerprint: one for step in steps if (one := self.store.get(step.fingerprint))}

    def _comparison(self, part: MeasuredPart) -> Artifact | None:
        steps = [step for step in part.plan.steps if step.name == COMPARISON]
        if not steps:
            return None
        comparison = self.store.get(steps[0].fingerprint)
        if comparison is None:
            raise DataError(
                f"the comparison of claim {self.name} is not in the store; run `cursus claim {self.name}` again"
            )
        return comparison

    def _read(self, part: Measurement) -> Samples:
        comparison = self.comparisons[part]
        if comparison is None:
            return self._of_records(part)
        reads = read_layer_samples if comparison.provenance.kind == Kind.PROBE else read_samples
        return reads(comparison.folder)

    def _of_records(self, part: Measurement) -> Samples:
        """The figures that the records of trained stages have, one row for each seed."""
        import numpy as np

        result: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
        values: dict[str, Any] = {
            "training_seconds": lambda one: one.provenance.environment.seconds,
            "training_tokens": lambda one: one.provenance.result.get("tokens", 0),
        }
        for side, measurement in self.sides.items():
            if measurement == part:
                for figure in STEP_FIGURES:
                    rows = [np.asarray([[float(values[figure.sample](one))]]) for one in self.trained(side)]
                    result[figure.sample, side.stage] = rows
        return result
