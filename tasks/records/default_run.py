"""The figures of the default run in README, from the record of an execution.

docs/default_run.json        scores, steps of the ladder, time, commit and machine of a finished execution
README.md, README.zh.md      between two comments: written from the record and nothing else

python -m tasks.records.default_run [EXECUTION]     # a new record of an execution in reports/; without it, README anew
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.lineage.disk import write_text_atomically
from pipelines.messages.translation import ENGLISH, in_language, message
from pipelines.recipe.load import Library
from pipelines.recipe.schema import Recipe
from pipelines.reports.elements.axes import duration
from pipelines.reports.elements.wording import change, metric_name, score, span
from pipelines.reports.score_tables import BASELINE_NAMES
from tasks.datasets.planning import store_folder
from tasks.environment import project_root
from tasks.records.measurements import cost_record

RECORD = Path("docs/default_run.json")
PAGES = {ENGLISH: Path("README.md"), "zh": Path("README.zh.md")}
"""Language → the page in which the record is shown."""
BEGIN = "<!-- written by `python -m tasks.records.default_run`: do not edit -->"
END = "<!-- end of what is written -->"


def record_of(root: Path, execution: str) -> dict[str, Any]:
    """The record of the execution with this id, of its first evaluation.

    Raises DataError for an execution that is unknown, or that was not computed by it as a whole.
    """
    path = root / "reports" / execution / "execution.json"
    if not path.is_file():
        raise DataError(f"{path}: there is no such execution; `ls {root / 'reports'}` lists them")
    done = json.loads(path.read_text(encoding="utf-8"))
    if cached := [step["stage"] for step in done["steps"] if step["cached"]]:
        raise DataError(f"{path}: {cached[0]} was in the store before; the time of a whole run needs an empty store")
    report = next(step["fingerprint"] for step in done["steps"] if step["kind"] == "evaluate")
    folder = store_folder(root) / report
    evaluation = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    scores, baselines = (evaluation["sections"][name] for name in ("classification", "baselines"))
    cost = cost_record([done["seconds"]], len(done["steps"]) - 1)
    return {
        "execution": execution,
        "started": done["started"],
        "commit": done["parameters"]["commit"],
        "dataset": done["dataset"],
        "recipe": done["recipe"],
        "settings": settings_digest(Library(root / "recipes").load(done["recipe"])),
        "metric": scores["verdict_metric"],
        "examples": scores["examples"],
        "baselines": baselines["baselines"],
        "stages": scores["stages"],
        "ladder": [*scores["ladder"], scores["whole_ladder"]],
        "cost": cost,
    }


def settings_digest(recipe: Recipe) -> str:
    """A digest of every setting of a recipe's stages."""
    document = {name: stage.model_dump(mode="json") for name, stage in recipe.stages.items()}
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def block(record: Mapping[str, Any], language: str = ENGLISH) -> str:
    """What README says of the default run, in `language`, with the comments around it."""
    with in_language(language):
        return "\n".join([BEGIN, *_lines(record), END])


def _lines(record: Mapping[str, Any]) -> list[str]:
    metric, cost = record["metric"], record["cost"]
    rows = [(message(BASELINE_NAMES[one["name"]]), one[metric], "") for one in record["baselines"]]
    changes = {step["to"]: step for step in record["ladder"][:-1]}
    rows += [(f"`{one['stage']}`", one[metric], _change(changes.get(one["stage"]), metric)) for one in record["stages"]]
    return [
        message(
            "{duration} on {cores} cores of an {processor} once the data is prepared "
            "({day.day} {day:%B} {day.year}, commit {commit});",
            duration=duration(cost["seconds"]),
            cores=cost["cores"],
            processor=cost["processor"],
            day=datetime.fromisoformat(record["started"]),
            commit=record["commit"][:8],
        ),
        message(
            "{metric} on {examples:,} test examples with 95 % intervals, up to {seeds} seeds.",
            metric=metric_name(metric),
            examples=record["examples"],
            seeds=max(len(one["seeds"]) for one in record["stages"]),
        ),
        "",
        message("| model | {metric} | against the stage before |", metric=metric_name(metric)),
        "|---|---|---|",
        *(
            f"| {name} | {score(one['mean'], metric)} [{span(one['low'], one['high'], metric)}] | {shown} |"
            for name, one, shown in rows
        ),
        "",
        message("All stages together: {change}.", change=_change(record["ladder"][-1], metric)),
    ]


def _change(step: Mapping[str, Any] | None, metric: str) -> str:
    return "" if step is None else change(step[metric], metric, step["verdict"])


def with_block(page: str, record: Mapping[str, Any], language: str = ENGLISH) -> str:
    """The page in `language` with its block written anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{block(record, language)}{after}"


def main(words: Sequence[str]) -> None:
    root = project_root()
    if words:
        record = record_of(root, words[0])
        write_text_atomically(root / RECORD, json.dumps(record, indent=1) + "\n")
    record = json.loads((root / RECORD).read_text(encoding="utf-8"))
    for language, name in PAGES.items():
        page = root / name
        write_text_atomically(page, with_block(page.read_text(encoding="utf-8"), record, language))


if __name__ == "__main__":
    main(sys.argv[1:])
