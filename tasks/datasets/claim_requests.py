"""Resolution of a request to measure a claim: to its parts, each a request over one dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.recipe.claim import Claim
from pipelines.recipe.claims import Measurement, claim_of, claim_on, figure_source, measurements, recipe_of_claim
from pipelines.recipe.schema import Recipe
from pipelines.recipe.tuning import Point, grid_recipe, with_choices
from tasks.datasets.libraries import recipes_for, recipes_of, setting_of_dataset, settings_of
from tasks.datasets.planning import Request, resolve_request


@dataclass(frozen=True)
class ClaimRequest:
    """A claim, the datasets on which it is measured, and the parts that have to be measured for it."""

    recipe: Recipe
    label: str
    claim: Claim
    parts: tuple[Measurement, ...]
    variants: tuple[str, ...]
    seeds: int | None
    smoke: bool
    draws: int | None = None
    choices: Mapping[Measurement, Mapping[str, Point]] = field(default_factory=dict)
    """Part → compared stage → the settings that its validation chose, of a claim that tunes them."""

    @classmethod
    def resolve(
        cls,
        root: Path,
        name: str,
        data: Sequence[str] = (),
        variants: Sequence[str] = (),
        seeds: int | None = None,
        smoke: bool = False,
        draws: int | None = None,
    ) -> Self:
        """The claim `recipe/claim`; `data` replaces its datasets: a name, or `role=name` for a claim about several.

        Raises RecipeError for an unknown recipe or claim, for a dataset that is not in params.yaml, and where no judge
        records the claim's figure on it.
        """
        owner, _, label = name.partition("/")
        stated = recipes_of(root).load(owner)
        claim = claim_on(claim_of(stated, label), data)
        _check_datasets(root, name, claim)
        dataset = claim.dataset(claim.form.sides()[0].trained)
        recipe = recipes_for(root, dataset).load(owner, tuple(variants) or None)
        parts = tuple(dict.fromkeys(measurements(recipe, claim).values()))
        for part in parts:
            _check_part(root, recipe, label, part)
        return cls(recipe, label, claim, parts, tuple(variants), seeds, smoke, draws)

    def of_part(self, root: Path, part: Measurement) -> Request:
        """The request that trains and judges what `part` measures."""
        setting = setting_of_dataset(root, part.judged)
        library = recipes_for(root, part.trained)
        chosen = self.choices.get(part, {})

        def measured(recipe: Recipe) -> Recipe:
            return recipe_of_claim(
                with_choices(recipe, chosen),
                self.label,
                self.seeds,
                part.stages,
                setting,
                self.draws,
                lambda owner: library.load(owner).stages,
            )

        return replace(self._of(root, part), transform=measured)

    def grid(self, root: Path, part: Measurement) -> Request:
        """The request that trains what `part` compares at every point of the claim's grid."""
        return replace(self._of(root, part), transform=partial(grid_recipe, name=self.label, stages=part.stages))

    def chosen(self, part: Measurement, choices: Mapping[str, Point]) -> Self:
        """The same request with what the validation of a part chose."""
        return replace(self, choices={**self.choices, part: choices})

    def _of(self, root: Path, part: Measurement) -> Request:
        request = resolve_request(root, part.trained, self.recipe.name, self.variants, self.smoke)
        return replace(request, reduces=True, judged_on=part.judged if part.judged != part.trained else None)


def _check_datasets(root: Path, name: str, claim: Claim) -> None:
    known = settings_of(root)
    for dataset in claim.datasets:
        if dataset not in known:
            raise RecipeError(
                f"claim {name} is measured on the dataset {dataset!r}, which is not in params.yaml: add it "
                f"(docs/data.md shows how), or choose another with --data.{did_you_mean(dataset, known)}"
            )


def _check_part(root: Path, recipe: Recipe, label: str, part: Measurement) -> None:
    """Whether the figure is recorded on the data of a part, and, of a transfer, whether its task is the same."""
    trained, judged = (setting_of_dataset(root, one) for one in (part.trained, part.judged))
    if part.task and trained.family != judged.family:
        raise RecipeError(
            f"claim {recipe.name}/{label} judges on {part.judged!r} ({judged.family}) what it trains on "
            f"{part.trained!r} ({trained.family}): choose datasets of one task family with --data"
        )
    figure_source(recipe, label, judged, part.stages)
