"""A recipe's lattice: every subset of the stages on plain text that come before its fine-tuning, fine-tuned alike.

    general ─ domain ─ task ─ classify      becomes, with k = 3 of them, 2^k fine-tuned stages over one tree of prefixes:

    scratch ┬─ task                    general ┬─ task
            └─ domain ── task                  └─ domain ── task

What has the same ancestors is trained once. A path that the recipe itself fine-tunes (`scratch`, `from_general`) keeps that
stage's settings, and its models if they are in the store; every other is fine-tuned as the recipe's longest path is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.starts import Untrained

LATTICE = "lattice"
"""Name of the evaluate stage of a lattice."""
SEEDS = 5


def lattice_of(
    recipe: Recipe, seeds: int | None = None, sizes: Sequence[int] = (), finetuned: str | None = None
) -> Recipe:
    """The recipe that trains and judges all paths, over `seeds` fine-tuning seeds each.

    `sizes` are further numbers of labelled examples that every path is also fine-tuned on. `finetuned` names the stage whose
    path is varied; the fine-tuned one with most stages on plain text before it when None.

    Raises RecipeError where no fine-tuned stage comes after one on plain text, or `seeds` is less than two.
    """
    wanted = SEEDS if seeds is None else seeds
    if wanted < 2:
        raise RecipeError(
            "a lattice of one seed says nothing: effects are judged by how seeds vary; ask for two or more"
        )
    chains = {
        name: chain
        for name, stage in recipe.stages.items()
        if stage.kind is Kind.FINETUNE and (chain := _chain(recipe, stage)) is not None
    }
    if finetuned is not None and finetuned not in chains:
        raise RecipeError(
            f"recipe {recipe.name}: {finetuned!r} is no fine-tuned stage with a path of its own."
            f"{did_you_mean(finetuned, chains)}"
        )
    longest = finetuned or max(chains, key=lambda name: len(chains[name]), default="")
    if not longest or not chains[longest]:
        raise RecipeError(
            f"recipe {recipe.name} fine-tunes nothing that was trained on plain text before: there is no stage whose worth "
            "could be asked"
        )
    return _Lattice(recipe, longest, chains).build(tuple(range(wanted)), sizes)


class _Lattice:
    def __init__(self, recipe: Recipe, longest: str, chains: dict[str, tuple[str, ...]]) -> None:
        self.recipe, self.longest, self.factors = recipe, longest, chains[longest]
        self.stages: dict[str, Stage] = {self.factors[0]: recipe.stages[self.factors[0]]}
        self.own: dict[tuple[str, ...], str] = {}
        for name, chain in chains.items():
            if self._alike(name):
                self.own.setdefault(chain, name)
        self.own[self.factors] = longest

    def build(self, seeds: tuple[int, ...], sizes: Sequence[int]) -> Recipe:
        paths: list[dict[str, Any]] = []
        for kept in range(len(self.factors) + 1):
            for through in combinations(self.factors, kept):
                name = self.own.get(through) or f"{self.longest}_{_name(through)}"
                stage = self.recipe.stages[self.own.get(through, self.longest)]
                fixed = stage.model_copy(update={"start": self._start(through), "seeds": seeds})
                self.stages[name] = fixed
                paths.append({"stage": name, "through": through})
                for size in sizes:
                    few = fixed.budget.model_copy(update={"labelled": size})
                    self.stages[f"{name}_{size}"] = fixed.model_copy(update={"budget": few})
                    paths.append({"stage": f"{name}_{size}", "through": through, "labelled": size})
        effects = {"name": Evaluation.of_paths, "factors": self.factors, "paths": paths}
        # what the recipe holds against its models stands beside these too
        beside = {
            repr(one): one
            for stage in self.recipe.stages.values()
            if stage.kind is Kind.EVALUATE
            for one in stage.suite
            if one.of_task
        }
        self.stages[LATTICE] = Stage.model_validate(
            {
                "kind": Kind.EVALUATE,
                "start": [path["stage"] for path in paths],
                "corpus": "task",
                "suite": [effects, *beside.values()],
            }
        )
        return self.recipe.model_copy(update={"stages": self.stages, "claims": {}})

    def _start(self, through: tuple[str, ...]) -> str | Untrained:
        """What the fine-tuning after `through` starts from; the stages that takes are added."""
        if not through:
            return Untrained(untrained=self.factors[0])
        last = through[-1]
        # a prefix of the recipe's own path is its own stage
        own = through == self.factors[: len(through)]
        name = last if own else _name(through)
        if name not in self.stages:
            before = self._start(through[:-1])
            self.stages[name] = self.recipe.stages[last].model_copy(update={} if own else {"start": before})
        return name

    def _alike(self, name: str) -> bool:
        """Whether a fine-tuned stage answers the same question by the same means as the one whose path is varied."""
        stage, longest = self.recipe.stages[name], self.recipe.stages[self.longest]
        return all(
            getattr(stage, part) == getattr(longest, part) for part in ("head", "objective", "corpus", "corruption")
        )


def _chain(recipe: Recipe, stage: Stage) -> tuple[str, ...] | None:
    """The stages on plain text before `stage`, the first one first; None where another recipe or a checkpoint is among them."""
    found: list[str] = []
    start = stage.start
    while isinstance(start, str):
        if start not in recipe.stages or not recipe.stages[start].kind.reads_plain_text:
            return None
        found.append(start)
        start = recipe.stages[start].start
    return tuple(reversed(found)) if isinstance(start, Untrained) or found else None


def _name(through: Sequence[str]) -> str:
    """Of a path, or of the stage on plain text at its end, where the recipe has no name for it."""
    return "_".join(through) + "_only"
