"""The values of a dataset card, collected from the records of the data steps: no text is read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.corpora.evidence.lengths import bin_begins
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.licences import UNSTATED, licence_of
from pipelines.corpora.settings.sources import Source
from pipelines.corpora.settings.tables import TASK_TEXT, UNLABELLED, all_tables, example_tables, text_tables
from pipelines.corpora.settings.task import FileTask
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.pinned_sources import sources_of
from pipelines.corpora.steps.step import table_path
from pipelines.errors import RecipeError
from pipelines.parts.segmentations import UNSPACED
from pipelines.reports.cards.preview import preview
from pipelines.task_families.labelled_tables import MAIN, PARTS, labelled_table, read_as

LEDGER = Path("decontaminated", "ledger.parquet")
SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
LARGEST = "n>10M"


def facts(dataset: str, settings: DatasetSettings, root: Path, home: Path) -> dict[str, Any]:
    """The values that the card's templates show."""
    summary, verdict = read_json(home / "summary.json"), read_json(home / "verdict.json")
    tables = read_json(home / "profile.json")["tables"]
    pinned = read_json(root / "data" / "pins" / f"{dataset}.json")["sources"]
    names = all_tables(settings)
    documents = sum(tables[name]["documents"] for name in names)
    spaced = settings.language not in UNSPACED
    texts = [text for name in text_tables(settings) for text in tables[name]["texts"]]
    return {
        "dataset": dataset,
        "language": settings.language,
        "family": summary["family"],
        "category": settings.main.family.hub_category,
        "size": next((name for most, name in SIZES if documents < most), LARGEST),
        "sources": list(licensed_sources(settings, pinned)),
        "licences": sorted({source["licence"] for source in licensed_sources(settings, pinned)}),
        "verdict": verdict,
        "tables": [
            tables[name]
            | {
                "name": name,
                "bars": _bars(tables[name]["lengths"]),
                "fertility": _ratio(tables[name]["tokens"], "tokens", "words"),
                "unknown_rate": _ratio(tables[name]["tokens"], "unknown", "tokens"),
            }
            for name in names
        ],
        "unit": "word" if spaced else "character",
        "tokenizer": settings.quality.tokenizer.name,
        "joint": " " if spaced else "",
        "corpora": [{"name": name, "path": _relative(home, name)} for name in text_tables(settings)],
        "tasks": [_task(settings, name, summary, tables, home) for name in settings.labelled],
        "steps": _steps(summary["steps"]),
        "samples": _samples(summary["steps"]),
        "mixtures": summary.get("mixtures", {}),
        "ledger": overlaps(home / LEDGER, _readers(settings, root)),
        "preview": preview(settings, root, texts),
    }


def licensed_sources(settings: DatasetSettings, pinned: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every source with its table and its licence."""
    listed: list[tuple[str, Sequence[Source]]] = [("general", settings.general), ("domain", settings.domain)]
    listed += [(name, corpus.sources) for name, corpus in settings.corpora.items()]
    listed += [(name, sources_of(task)) for name, task in settings.labelled.items()]
    for table, sources in listed:
        for source in sources:
            yield {"table": table, "location": source.location, "licence": licence_of(source, pinned)}
    for name, task in settings.labelled.items():
        for path in task.files if isinstance(task, FileTask) else ():
            yield {"table": name, "location": path, "licence": task.licence or UNSTATED}


def _task(
    settings: DatasetSettings, name: str, summary: Mapping[str, Any], tables: Mapping[str, Any], home: Path
) -> dict[str, Any]:
    """A labelled task: its family, its tables with their answers, and a few examples."""
    own = [(part, labelled_table(name, part)) for part in PARTS]
    return {
        "name": name,
        "called": settings.main_name if name == MAIN else None,
        "family": settings.labelled[name].family.name,
        "tables": [
            {"name": table, "part": part, "path": _relative(home, table)}
            | {key: tables[table][key] for key in ("kinds", "documents")}
            for part, table in own
        ],
        "kinds": sorted({kind for _, table in own for kind in tables[table]["kinds"]}),
        "shown": (summary if name == MAIN else summary["tasks"][name])["shown"],
    }


def _relative(home: Path, table: str) -> str:
    return table_path(home, table).relative_to(home).as_posix()


def _steps(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For every step and table: the documents left, and the numbers of dropped and changed ones by reason."""
    return [
        {
            "step": step["step"],
            "table": name,
            "documents": table["documents"],
            "dropped": table.get("dropped", {}),
            "changed": table.get("changed", {}),
        }
        for step in steps
        for name, table in step["tables"].items()
    ]


def _samples(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """One example text for each reason for which a step dropped texts."""
    return [
        {"step": step["step"], "table": name, "reason": reason, **samples[0]}
        for step in steps
        for name, table in step["tables"].items()
        for reason, samples in table.get("samples", {}).items()
        if samples
    ]


def _bars(lengths: Mapping[str, int]) -> list[dict[str, Any]]:
    """A histogram: for each bin its first length, its documents, and its height relative to the highest bin."""
    bins = [int(number) for number in lengths]
    most = max(lengths.values(), default=1)
    return [
        {"begins": bin_begins(number), "documents": many, "height": many / most}
        for number in range(min(bins, default=0), max(bins, default=-1) + 1)
        for many in [lengths.get(str(number), 0)]
    ]


def _ratio(counts: Mapping[str, int], part: str, whole: str) -> float:
    return counts[part] / counts[whole] if counts[whole] else 0.0


def _readers(settings: DatasetSettings, root: Path) -> dict[str, str]:
    """Table of the ledger → the stages of the dataset's recipe that read it; empty when the recipe cannot be loaded."""
    from pipelines.recipe.folders import RecipeFolders
    from pipelines.recipe.lines import line_views
    from pipelines.recipe.load import Library

    try:
        stages = Library(RecipeFolders.of_project(root)).load(settings.recipe, settings.variants).stages
    except (RecipeError, OSError):
        return {}
    read = {
        name: {word for view in line_views(stage).values() for word in view.corpus} for name, stage in stages.items()
    }
    words = {name: name for name in text_tables(settings)} | {UNLABELLED: TASK_TEXT}
    words |= {table: read_as(table) for table in example_tables(settings)}
    return {
        table: ", ".join(name for name, own in read.items() if {word, _alias(settings, word)} & own)
        for table, word in words.items()
    }


def _alias(settings: DatasetSettings, word: str) -> str:
    """The main task's own name for `task`; any other word itself."""
    return settings.main_name or word if word == MAIN else word


def overlaps(path: Path, readers: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Number of overlaps in the ledger by table, evaluation part, kind and action, with the stages that read the table.

    None without a ledger.
    """
    import pyarrow.parquet as pq

    if not path.is_file():
        return None
    columns = ["table", "part", "kind", "action"]
    counts: Counter[tuple[str, ...]] = Counter()
    with pq.ParquetFile(path) as ledger:
        for batch in ledger.iter_batches(columns=columns):
            counts.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return [
        dict(zip(columns, key, strict=True)) | {"texts": many, "read by": readers.get(key[0], "")}
        for key, many in sorted(counts.items())
    ]
