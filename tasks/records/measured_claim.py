"""A finished measurement of a claim: the samples of every side from the store, and their judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError
from pipelines.judging.claims import ClaimForm, ComparedSide
from pipelines.judging.claims.chance import near_chance
from pipelines.judging.claims.judgement import JudgedContrast, MeasuredSide, estimate, judge
from pipelines.judging.figures import STEP_FIGURES, RecordedFigure
from pipelines.judging.probes.stage import read_probe_samples
from pipelines.judging.samples import CONSTANT, LEARNED, Samples, read_samples
from pipelines.lineage.store import Artifact, Store
from pipelines.recipe.claim import MOST_DRAWS, Claim
from pipelines.recipe.claims import COMPARISON, Measurement, figure_source, measurements
from pipelines.recipe.draws import draw_name
from pipelines.recipe.figures import recorded_figures
from pipelines.recipe.kinds import Kind
from pipelines.recipe.plan import Plan
from pipelines.recipe.problems import Setting
from pipelines.recipe.schema import Recipe
from pipelines.recipe.tables import setting_of
from tasks.datasets.prepared import Prepared
from tasks.records.tuning import Tuning

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
    tuning: Tuning | None = None
    """The search that chose the settings of its stages; None of a claim that tunes nothing."""


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
        kept = [self._samples[part].get((here.sample, name), []) for name in self._drawn(side)]
        rows = [one for of_draw in kept for one in of_draw]
        return MeasuredSide(rows, part.items, here.score, len(kept))

    def baselines(self, side: ComparedSide, figure: RecordedFigure) -> dict[str, NDArray[np.float64]]:
        """The rows of every baseline without a network on the items of a side, by the names of `samples`."""
        part = self.sides[side]
        sample = self._recorded(part)[figure.name].sample
        return {
            name: models[0]
            for (kept, name), models in self._samples[part].items()
            if kept == sample and name.startswith((CONSTANT, LEARNED))
        }

    @cached_property
    def near_chance(self) -> bool:
        """Whether no side is surely above what answers without reading score."""
        if self.lower:
            return False
        return near_chance(
            self.form,
            self.figure,
            lambda side: self.measured(side, self.figure),
            lambda side: self.baselines(side, self.figure),
            self.seed,
        )

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
        """The artifacts of a side's models, seeds ascending, those of a draw of pre-training together."""
        steps = self.parts[self.sides[side]].plan.steps
        names = [
            (owner or self.recipe.name, name) for owner, _, name in (one.rpartition("/") for one in self._drawn(side))
        ]
        own = [step for name in names for step in steps if (step.recipe, step.name) == name]
        return [one for step in own if (one := self.store.get(step.fingerprint))]

    def draws(self, side: ComparedSide) -> int:
        """Number of pre-training draws of a side."""
        return len(self._drawn(side))

    def _drawn(self, side: ComparedSide) -> list[str]:
        """Names of the stage of a side in every draw of pre-training."""
        stages = self.parts[self.sides[side]].plan.recipe.stages
        names = (draw_name(side.stage, draw) for draw in range(1, MOST_DRAWS))
        return [side.stage, *takewhile(stages.__contains__, names)]

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
        reads = read_probe_samples if comparison.provenance.kind == Kind.PROBE else read_samples
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
                    size = len(rows) // self.draws(side)
                    for draw, name in enumerate(self._drawn(side)):
                        result[figure.sample, name] = rows[draw * size : (draw + 1) * size]
        return result
