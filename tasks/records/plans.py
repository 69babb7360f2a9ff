"""How each system without a recipe would be built: docs/plans.yaml, and the tables that are made of it.

python -m tasks.records.plans              # renders the tables in docs/decisions/0053-every-remaining-row.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from pydantic import Field, ValidationError, model_validator
from ruamel.yaml import YAML

from pipelines.errors import RecipeError
from pipelines.lineage.disk import write_text_atomically
from pipelines.recipe.strict import StrictModel
from tasks.environment import project_root

PLANS = Path("docs/plans.yaml")
PAGE = Path("docs/decisions/0053-every-remaining-row.md")
NEW_FILES = "pipelines"
"""Folder that new files are relative to."""
RECIPE_ONLY = "its recipe alone"


class LimitingContract(StrictModel):
    """A contract that some systems do not fit yet, or did not."""

    where: tuple[str, ...]
    """Files that would change."""
    now: str
    widening: str
    """What would make these systems new files only."""
    widened: bool = False
    """Whether that is done."""


class SystemPlan(StrictModel):
    """How a system would be built of new files."""

    axes: tuple[str, ...]
    """Keys of a stage, of a claim or of a dataset that it needs."""
    uses: tuple[str, ...] = ()
    """Parts that exist, and other systems that it is built on."""
    new: tuple[str, ...] = ()
    """Files to add, relative to `NEW_FILES`, besides the recipe."""
    how: str
    claim: tuple[str, str, str]
    """Form, figure, and what the figure is compared with."""
    waits_for: tuple[str, ...] = ()
    """Contracts that it does not fit, or did not."""


class Plans(StrictModel):
    """The content of docs/plans.yaml."""

    rows: dict[str, SystemPlan] = Field({})
    contracts: dict[str, LimitingContract] = Field({})

    @model_validator(mode="after")
    def _contracts_are_known(self) -> Plans:
        for row, plan in self.rows.items():
            if unknown := [name for name in plan.waits_for if name not in self.contracts]:
                raise ValueError(f"rows.{row}.waits_for: {unknown[0]!r} is not among the contracts")
        return self

    def waiting_for(self, contract: str) -> list[str]:
        """The rows that `contract` is narrow for."""
        return [row for row, plan in self.rows.items() if contract in plan.waits_for]

    def blocking(self, row: str) -> list[str]:
        """The contracts that would have to change before `row` is new files only."""
        return [name for name in self.rows[row].waits_for if not self.contracts[name].widened]

    def line(self, row: str) -> str:
        """The plan of `row` in a sentence: its axes, its new files, and the contracts that are too narrow."""
        plan = self.rows[row]
        files = ", ".join(f"`{file}`" for file in plan.new) or RECIPE_ONLY
        first = "".join(f"; first widen *{name}*" for name in self.blocking(row))
        return f"{', '.join(plan.axes)}: {files}{first}"


def main() -> None:
    """Render the tables of the decision."""
    root = project_root()
    text = (root / PAGE).read_text(encoding="utf-8")
    write_text_atomically(root / PAGE, rendered(text, read_plans(root)))


def read_plans(root: Path) -> Plans:
    """The plans of the project in `root`; none where it has no such file. Raises RecipeError for what is misspelt."""
    path = root / PLANS
    return _read_cached(path, path.stat().st_mtime_ns) if path.exists() else Plans()


def rendered(text: str, plans: Plans) -> str:
    """`text` with its tables, each between a line `<!-- name: begin -->` and a line `<!-- name: end -->`, anew."""
    tables = {"rows": _rows(plans), "widened": _contracts(plans, True), "blocking": _contracts(plans, False)}
    for name, lines in tables.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if (text.count(begin), text.count(end)) != (1, 1):
            raise RecipeError(f"{PAGE}: expected one table between {begin} and {end}")
        before, after = text.partition(begin)[0], text.partition(end)[2]
        text = before + "\n".join([begin, *lines, end]) + after
    return text


def _rows(plans: Plans) -> Iterator[str]:
    only = [row for row in plans.rows if not plans.blocking(row)]
    alone = [row for row in only if not plans.rows[row].new]
    waiting = len(plans.rows) - len(only)
    yield (
        f"{len(plans.rows)} rows have no recipe. {len(only)} need new files only, {len(alone)} of these nothing but a "
        f"recipe; {waiting} wait for a contract."
    )
    yield ""
    yield from _table(
        ("row", "axes", "new files", "how", "claim", "too narrow"),
        (
            (
                f"**{row}**",
                ", ".join(plan.axes) + (f" (with {', '.join(plan.uses)})" if plan.uses else ""),
                ", ".join(f"`{file}`" for file in plan.new) or RECIPE_ONLY,
                plan.how,
                f"`{plan.claim[0]}` of {plan.claim[1]}: {plan.claim[2]}",
                ", ".join(f"*{name}*" for name in plans.blocking(row)),
            )
            for row, plan in plans.rows.items()
        ),
    )


def _contracts(plans: Plans, widened: bool) -> Iterator[str]:
    chosen = [name for name, contract in plans.contracts.items() if contract.widened is widened]
    chosen.sort(key=lambda name: -len(plans.waiting_for(name)))
    yield from _table(
        ("contract", "where", "before" if widened else "now", "widening", "rows"),
        (
            (
                f"*{name}*",
                ", ".join(f"`{file}`" for file in plans.contracts[name].where),
                plans.contracts[name].now,
                plans.contracts[name].widening,
                f"{len(plans.waiting_for(name))}: {', '.join(plans.waiting_for(name))}",
            )
            for name in chosen
        ),
    )


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for cells in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@lru_cache(maxsize=8)
def _read_cached(path: Path, modified: int) -> Plans:
    values = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    if not isinstance(values, Mapping):
        raise RecipeError(f"{path}: expected a mapping with the keys rows and contracts")
    try:
        return Plans.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        keys = ".".join(str(key) for key in first["loc"])
        raise RecipeError(f"{path}: {keys + ': ' if keys else ''}{first['msg']}") from None


if __name__ == "__main__":
    main()
