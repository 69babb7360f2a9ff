"""Lattice of a recipe: every subset of its plain-text stages, each followed by the same fine-tuning.

    general ─ domain ─ task ─ classify      becomes, with k = 3 plain-text stages, 2^k fine-tuned stages over one tree
    of prefixes:

    scratch ┬─ task                    general ┬─ task
            └─ domain ── task                  └─ domain ── task

Stages with the same ancestors are trained once. A path that the recipe itself fine-tunes (`scratch`, `from_general`)
keeps that stage's settings, and its models if they are in the store; every other path is fine-tuned like the longest
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import MOST_LABELLED, MOST_SEEDS, Recipe, Stage
from pipelines.recipe.starts import Untrained

LATTICE = "lattice"
"""Name of the evaluate stage that is added for a lattice."""
MOST_FACTORS = 8
"""Largest number of stages of which every subset is trained: 256 paths."""
SEEDS = 5
"""Default number of fine-tuning seeds per path."""


def lattice_of(
    recipe: Recipe, seeds: int | None = None, sizes: Sequence[int] = (), finetuned: str | None = None
) -> Recipe:
    """Recipe that trains and compares all paths, over `seeds` fine-tuning seeds each.

    `sizes` are numbers of labelled examples on which every path is fine-tuned in addition. `finetuned` names the stage
    whose path is varied; None takes the fine-tuned stage with the most plain-text stages before it.

    Raises RecipeError when no fine-tuned stage follows a plain-text stage, or when `seeds` is less than two.
    """
    seed_count = SEEDS if seeds is None else seeds
    if seed_count < 2:
        raise RecipeError(
            "a lattice needs at least two seeds: effects are compared with the variation between seeds; give two or "
            "more"
        )
    chains = {
        name: chain
        for name, stage in recipe.stages.items()
        if stage.kind is Kind.FINETUNE and (chain := _chain(recipe, stage)) is not None
    }
    if finetuned is not None and finetuned not in chains:
        raise RecipeError(
            f"recipe {recipe.name}: {finetuned!r} is not a fine-tuned stage with a path of plain-text stages."
            f"{did_you_mean(finetuned, chains)}"
        )
    # a stage of one task, if there is one
    alone = [name for name, chain in chains.items() if chain and not recipe.stages[name].lines]
    longest = finetuned or max(alone or chains, key=lambda name: len(chains[name]), default="")
    if not longest or not chains[longest]:
        raise RecipeError(
            f"recipe {recipe.name} has no fine-tuned stage after a plain-text stage of its own, so there is no stage "
            f"whose effect could be measured{_elsewhere(recipe)}"
        )
    if lines := recipe.stages[longest].lines:
        raise RecipeError(
            f"recipe {recipe.name}: stage {longest!r} trains {', '.join(lines)} together, and a lattice measures one "
            f"task; add a stage that trains one of them alone (start: {chains[longest][-1]})"
        )
    if len(chains[longest]) > MOST_FACTORS:
        raise RecipeError(
            f"recipe {recipe.name}: stage {longest!r} follows {len(chains[longest])} plain-text stages, and a lattice "
            f"trains every subset of at most {MOST_FACTORS}; start it from an earlier stage"
        )
    if seed_count > MOST_SEEDS:
        raise RecipeError(f"{seed_count:,} seeds are more than {MOST_SEEDS:,}, each of which trains every path")
    if wrong := next((size for size in sizes if not 0 < size <= MOST_LABELLED), None):
        raise RecipeError(f"{wrong:,} is no number of labelled examples: use 1 to {MOST_LABELLED:,}")
    return _Lattice(recipe, longest, chains).build(tuple(range(seed_count)), tuple(dict.fromkeys(sizes)))


class _Lattice:
    def __init__(self, recipe: Recipe, longest: str, chains: dict[str, tuple[str, ...]]) -> None:
        self.recipe, self.longest, self.factors = recipe, longest, chains[longest]
        self.stages: dict[str, Stage] = {self.factors[0]: recipe.stages[self.factors[0]]}
        self.own: dict[tuple[str, ...], str] = {}
        for name, chain in chains.items():
            if self._same_task(name):
                self.own.setdefault(chain, name)
        self.own[self.factors] = longest

    def build(self, seeds: tuple[int, ...], sizes: Sequence[int]) -> Recipe:
        paths: list[dict[str, Any]] = []
        for length in range(len(self.factors) + 1):
            for through in combinations(self.factors, length):
                name = self.own.get(through) or f"{self.longest}_{_name(through)}"
                stage = self.recipe.stages[self.own.get(through, self.longest)]
                # whichever stage its architecture is taken from: all have the same
                start = stage.start if not through and () in self.own else self._start(through)
                fixed = stage.model_copy(update={"start": start, "seeds": seeds})
                self.stages[name] = fixed
                paths.append({"stage": name, "through": through})
                for size in sizes:
                    few = fixed.budget.model_copy(update={"labelled": size})
                    self.stages[f"{name}_{size}"] = fixed.model_copy(update={"budget": few})
                    paths.append({"stage": f"{name}_{size}", "through": through, "labelled": size})
        effects = {"name": Evaluation.lattice_evaluation, "factors": self.factors, "paths": paths}
        # evaluations of the task that the recipe lists are kept
        task_evaluations = {
            repr(one): one
            for stage in self.recipe.stages.values()
            if stage.kind is Kind.EVALUATE
            for one in stage.suite
            if one.independent_of_models
        }
        self.stages[LATTICE] = Stage.model_validate(
            {
                "kind": Kind.EVALUATE,
                "start": [path["stage"] for path in paths],
                "corpus": self.recipe.stages[self.longest].corpus,
                "suite": [effects, *task_evaluations.values()],
            }
        )
        return self.recipe.model_copy(update={"stages": self.stages, "claims": {}})

    def _start(self, through: tuple[str, ...]) -> str | Untrained:
        """Start of the fine-tuning after the path `through`; adds the stages of the path."""
        if not through:
            return Untrained(untrained=self.factors[0])
        last = through[-1]
        # a prefix of the recipe's own path keeps its stage
        own = through == self.factors[: len(through)]
        name = last if own else _name(through)
        if name not in self.stages:
            before = self._start(through[:-1])
            self.stages[name] = self.recipe.stages[last].model_copy(update={} if own else {"start": before})
        return name

    def _same_task(self, name: str) -> bool:
        """Whether a fine-tuned stage has the head, objective, corpus and corruption of the one whose path is varied."""
        stage, longest = self.recipe.stages[name], self.recipe.stages[self.longest]
        return all(
            getattr(stage, part) == getattr(longest, part) for part in ("head", "objective", "corpus", "corruption")
        )


def _chain(recipe: Recipe, stage: Stage) -> tuple[str, ...] | None:
    """Plain-text stages before `stage`, in order; None when the path leads to another recipe or to a checkpoint."""
    names: list[str] = []
    start = stage.start
    while isinstance(start, str):
        if start not in recipe.stages or not recipe.stages[start].kind.reads_plain_text:
            return None
        names.append(start)
        start = recipe.stages[start].start
    return tuple(reversed(names)) if isinstance(start, Untrained) or names else None


def _elsewhere(recipe: Recipe) -> str:
    """What would fit a recipe whose fine-tuned stages continue those of another; empty for any other recipe."""
    starts = {
        stage.start.partition("/")[0]
        for stage in recipe.stages.values()
        if stage.kind is Kind.FINETUNE and isinstance(stage.start, str) and stage.start not in recipe.stages
    }
    names = " or ".join(f"`cursus lattice {name}`" for name in sorted(starts))
    return f": its models continue those of another recipe, whose stages {names} measures" if names else ""


def _name(through: Sequence[str]) -> str:
    """Name for a path, or for the plain-text stage at its end, that the recipe itself does not have."""
    return "_".join(through) + "_only"
