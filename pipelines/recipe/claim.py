"""Claim: a published result as a comparison to measure, in one of the forms of `pipelines.judging.claims`.

crf: {says: …, published: …, system: crf, baseline: softmax, metric: f1, data: weibo_ner}  # greater, in short
orders: {says: …, published: …, in_order: [five, four, three], figure: perplexity, data: docstrings}
small: {says: …, published: …, times: {system: int8, baseline: full, at_least: 3}, figure: bytes, data: docstrings}
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field, SerializeAsAny, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pipelines.components import discover, refuse_unknown_keys
from pipelines.judging.claims import ClaimForm, read_form
from pipelines.recipe.strict import StrictModel

SEEDS = 5
"""Default number of seeds of each compared stage."""
MOST_DRAWS = 20
MOST_POINTS = 64
SHORT = ("system", "baseline", "at_least")
"""Keys of a claim without a form: those of `greater`."""
AT_KEY = "at_key"
"""Type of a validation error whose context holds the `key` of the claim that it is about."""


class Claim(StrictModel):
    """Published result as a comparison to measure: a figure of several stages, all else equal."""

    says: str
    """Statement of the claim in one sentence."""
    published: str
    """Published figure, and where it is in the paper; for comparison only."""
    form: SerializeAsAny[ClaimForm]
    """How the figures are to differ; written as a key of its own, or as `system`, `baseline` and `at_least`."""
    data: str | dict[str, str]
    """Dataset of params.yaml for which the claim was written; by role where it is about several."""
    task: str | None = None
    """Task of the dataset on which the stages are judged, where one of them answers several; None: that of the
    others."""
    figure: str | None = None
    """Figure that a judge records (docs/catalogue.md), also written `metric`; None: the first metric of the dataset's
    task family."""
    by: str | dict[str, Any] | None = None
    """Evaluation or probe that records it, with its options; None: the one that can judge these stages."""
    lower: bool | None = None
    """Whether less is better; None: as the figure says."""
    seeds: int | None = Field(None, ge=1, le=1000)
    """Number of seeds trained for each stage; None: five, or one for a figure that no seed changes."""
    draws: int = Field(1, ge=1, le=MOST_DRAWS)
    """Number of draws of pre-training: the stages before the compared ones are repeated under so many seeds, and every
    compared stage is trained under all of its seeds after each. A claim about pre-training needs three or more."""
    tune: dict[str, tuple[Any, ...]] = Field({})
    """Settings of the compared stages to choose among on validation, the same grid for every side: `{lr: [1.0e-4,
    1.0e-3]}`. The first seed is trained at every point, all seeds at the best."""
    published_effect: float | None = None
    """The published difference, or quotient where the form compares these, as a number in the figure's own unit: what
    `--dry-run` compares the smallest effect with that this measurement would show."""

    @model_validator(mode="before")
    @classmethod
    def _with_form(cls, value: Any) -> Any:
        if not isinstance(value, dict) or isinstance(value.get("form"), ClaimForm):
            return value
        discover(ClaimForm.__module__)
        keys = [key for key in cls.model_fields if key != "form"]
        refuse_unknown_keys("claim", value, [*keys, "metric", *SHORT, *ClaimForm.members])
        stated = dict(value)
        forms = [key for key in stated if key in ClaimForm.members]
        short = {key: stated.pop(key) for key in SHORT if key in stated}
        if len(forms) > 1:
            raise _at(forms[1], f"a claim has one form; this one has {' and '.join(forms)}")
        if forms and short:
            raise _at(next(iter(short)), f"belongs into {forms[0]}: a claim with a form has no {', '.join(short)}")
        if not forms and not {"system", "baseline"} <= set(short):
            known = ", ".join(sorted(ClaimForm.members))
            raise _at("", f"a claim has `system` and `baseline`, or a form: {known}")
        if "metric" in stated and "figure" in stated:
            raise _at("figure", "the same as metric: give one of them")
        if "metric" in stated:
            stated["figure"] = stated.pop("metric")
        name = forms[0] if forms else ClaimForm.default_name
        options = stated.pop(name) if forms else short
        try:
            stated["form"] = read_form(name, options)
        except ValidationError as error:
            raise _at(name if forms else "", error.errors()[0]["msg"].removeprefix("Value error, ")) from None
        except ValueError as error:
            raise _at(name if forms else "", str(error)) from None
        return stated

    @field_validator("tune")
    @classmethod
    def _small_grid(cls, grid: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        if empty := next(
            (key for key, values in grid.items() if len(set(map(str, values))) < len(values or "-")), None
        ):
            raise ValueError(f"{empty}: give values that differ, one or more")
        if math.prod(map(len, grid.values())) > MOST_POINTS:
            raise ValueError(f"more than {MOST_POINTS} points, each of which trains every compared stage")
        return grid

    @field_validator("data")
    @classmethod
    def _some_data(cls, data: str | dict[str, str]) -> str | dict[str, str]:
        if not data:
            raise ValueError("name a dataset of params.yaml")
        return data

    @model_validator(mode="after")
    def _roles(self) -> Claim:
        form, roles = self.form, ", ".join(self.form.roles)
        if self.seeds is not None and self.seeds < form.fewest_seeds:
            raise _at("seeds", f"{form.name} compares seeds: give {form.fewest_seeds} or more, got {self.seeds}")
        if self.draws > 1 and form.of_spread:
            raise _at("draws", f"{form.name} compares the seeds after one draw: leave draws out")
        if isinstance(self.data, str):
            if form.several_datasets == "always":
                raise _at("data", f"{form.name} is about several datasets: give a mapping with the keys {roles}")
            stages = [side.stage for side in form.sides()]
            if twice := next((one for one in stages if stages.count(one) > 1), None):
                raise _at(form.name, f"the stage {twice!r} is on both sides: give other stages, or data for {roles}")
        elif form.several_datasets == "never":
            raise _at("data", f"{form.name} is about one dataset: give its name")
        elif set(self.data) != set(form.roles):
            raise _at("data", f"{form.name} has the roles {roles}, got {', '.join(self.data)}")
        return self

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of its datasets, each once."""
        return (self.data,) if isinstance(self.data, str) else tuple(dict.fromkeys(self.data.values()))

    def dataset(self, role: str) -> str:
        """Name of the dataset of a role of the form."""
        return self.data if isinstance(self.data, str) else self.data[role]


def _at(key: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(AT_KEY, "{message}", {"message": message, "key": key})
