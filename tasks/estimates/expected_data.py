"""A dataset that is not prepared yet, as it is expected to be: so that steps over it can be planned and estimated at
once. Nothing of it is read but the sizes of its files.

    settings of params.yaml, sizes of files ──▶ rows and characters of each table ──▶ seconds of preparing them
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipelines.corpora.reading import EXAMPLE_FORMATS, find_files
from pipelines.corpora.reading.addresses import is_address
from pipelines.corpora.reading.parts import whole_file
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.sources import DocumentationSource, FileSource, Source
from pipelines.corpora.settings.tables import TASK_TEXT, named_tables, table_aliases
from pipelines.corpora.settings.task import DocumentationTask, FileTask, LabelledTask, SplitTask, TextsOfLabelTask
from pipelines.corpora.shards.held_out import HELD_OUT
from pipelines.corpora.steps.sources import files_of
from pipelines.corpora.steps.step import TABLES, prepared, table_path
from pipelines.task_families.labelled_tables import MAIN, PARTS, labelled_table
from tasks.datasets.libraries import settings_of
from tasks.datasets.prepared import Prepared
from tasks.estimates.machine_speed import slowness
from tasks.estimates.work import TableSize

DOCUMENTATION = {"general": TableSize(74_000, 39_000_000), "domain": TableSize(17_700, 15_600_000)}
"""Documentation strings of an installation of 26 November 2026."""
FORM_SHARE = 0.3
"""Share of the characters of documentation strings that remain in a form other than their texts."""
DOCUMENTED = {"whole": TableSize(2_500, 3_900_000), "summaries": TableSize(3_340, 210_000)}
"""Labelled examples from SciPy's documentation, of the same day; sessions are estimated like whole texts."""
REMOTE = 50_000_000
"""Characters of a source whose files are on a server, which is not asked."""
TEXT_CHARACTERS, EXAMPLE_CHARACTERS = 500, 200
"""Mean length of a text, and of an example, in a file that was not read."""
IDEOGRAPH_BYTES = 3
"""Bytes of a character in UTF-8 in the languages of `IDEOGRAPHIC`."""
IDEOGRAPHIC = ("zh", "ja")
START_SECONDS, MEGABYTE_SECONDS = 38.0, 0.7
"""Preparation on the reference machine: of the processes of DVC and its steps, and of a million characters."""
USUAL_CLASSES = 5
"""Number of classes of a task whose examples were not read."""


def expected_data(dataset: str, root: Path) -> Prepared:
    """The dataset with the expected sizes of its tables, and with names in place of digests: none is that of a table.

    Raises RecipeError for an unknown dataset, DataError for a source that is missing here.
    """
    settings, root = settings_of(root)[dataset], root.resolve()
    sizes = _texts(settings, root) | _examples(settings, root)
    home = prepared(dataset, root)
    tables = {name: table_path(home, name) for name in (*TABLES, HELD_OUT, *named_tables(settings))}
    digests = {name: f"not prepared: {dataset}/{name}" for name in tables}
    for alias, name in table_aliases(settings).items():
        tables[alias], digests[alias] = tables[name], digests[name]
    counts = {name: {"documents": size.documents, "characters": size.characters} for name, size in sizes.items()}
    labels = [str(number) for number in range(max(size.answers for size in sizes.values()))]
    return Prepared(
        name=dataset,
        language=settings.language,
        family=settings.main.family.name,
        families={name: task.family.name for name, task in settings.tasks.items()},
        folder=home,
        tables=tables,
        digests=digests,
        outputs={},
        labels=labels,
        summary={"tables": counts, "labels": labels},
        verdict={},
    )


def preparation_seconds(expected: Prepared) -> float:
    """Estimated seconds of preparing an `expected_data` on this machine."""
    characters: int = sum(table["characters"] for table in expected.summary["tables"].values())
    return (START_SECONDS + MEGABYTE_SECONDS * characters / 1e6) * slowness()


def _texts(settings: DatasetSettings, root: Path) -> dict[str, TableSize]:
    sources: dict[str, Sequence[Source]] = {"general": settings.general, "domain": settings.domain}
    sources |= {name: corpus.sources for name, corpus in settings.corpora.items()}
    sizes = {name: _together([_of_source(one, settings, root) for one in some]) for name, some in sources.items()}
    general = sizes["general"]
    return sizes | {HELD_OUT: TableSize(general.documents // 100, general.characters // 100)}


def _examples(settings: DatasetSettings, root: Path) -> dict[str, TableSize]:
    """The parts of every task, and the texts of the training part of the main one."""
    sizes: dict[str, TableSize] = {}
    for name, task in settings.labelled.items():
        parts = _parts(task, settings, root)
        sizes |= {
            labelled_table(name, part): _limited(parts[part], task if part == "train" else None) for part in PARTS
        }
        if name == MAIN:
            sizes[TASK_TEXT] = _whole_texts(task, parts["train"])
    return sizes


def _parts(task: LabelledTask, settings: DatasetSettings, root: Path) -> dict[str, TableSize]:
    if isinstance(task, FileTask):
        paths = {"train": task.train, "validation": task.validation, "test": task.test}
        sizes = {part: _of_files(path, settings, root) for part, path in paths.items() if path}
        if "validation" not in sizes:
            sizes["validation"] = _share(sizes["train"], task.validation_share)
            sizes["train"] = _share(sizes["train"], 1 - task.validation_share)
        return sizes
    assert isinstance(task, SplitTask)
    pool = _pool(task, settings, root)
    shares = {"validation": task.validation_share, "test": task.test_share}
    return {part: _share(pool, share) for part, share in ({"train": 1 - sum(shares.values())} | shares).items()}


def _pool(task: SplitTask, settings: DatasetSettings, root: Path) -> TableSize:
    """All examples of a task that has one pool of them."""
    if isinstance(task, DocumentationTask):
        pool = DOCUMENTED.get(task.texts, DOCUMENTED["whole"])
        return TableSize(pool.documents, pool.characters, task.classes)
    of_label = task.texts_of_label if isinstance(task, TextsOfLabelTask) else {}
    sources = [one for some in of_label.values() for one in some] or getattr(task, "tagged_words", [])
    pool = _together([_of_source(one, settings, root) for one in sources])
    return TableSize(pool.documents, pool.characters, len(of_label) or USUAL_CLASSES)


def _limited(size: TableSize, task: LabelledTask | None) -> TableSize:
    """The labelled training examples that a task keeps; those of other parts are all kept."""
    limit = None if task is None else task.labelled_examples
    if task is not None and task.labels_per_class is not None:
        limit = task.labels_per_class * size.answers
    return size if limit is None or limit >= size.documents else _share(size, limit / size.documents)


def _whole_texts(task: LabelledTask, train: TableSize) -> TableSize:
    whole = isinstance(task, DocumentationTask) and task.texts == "summaries"
    return TableSize(train.documents, round(train.documents * DOCUMENTED["whole"].characters_each)) if whole else train


def _of_source(source: Source, settings: DatasetSettings, root: Path) -> TableSize:
    if isinstance(source, DocumentationSource):
        size = DOCUMENTATION[source.documentation]
        return size if source.form == "texts" else _share(size, FORM_SHARE)
    if isinstance(source, FileSource) and is_address(source.path):
        return TableSize(REMOTE // TEXT_CHARACTERS, REMOTE)
    size = _of_bytes(sum(whole_file(name, path).weight for name, path in files_of(source, root).items()), settings)
    return _share(size, source.share[1] - source.share[0])


def _of_files(path: str, settings: DatasetSettings, root: Path) -> TableSize:
    """The examples of a file, a folder or a glob."""
    if is_address(path):
        return TableSize(REMOTE // EXAMPLE_CHARACTERS, REMOTE, USUAL_CLASSES)
    files = find_files(path, root, EXAMPLE_FORMATS)
    size = _of_bytes(sum(whole_file(name, file).weight for name, file in files.items()), settings)
    return TableSize(size.characters // EXAMPLE_CHARACTERS, size.characters, USUAL_CLASSES)


def _of_bytes(number: int, settings: DatasetSettings) -> TableSize:
    characters = number // (IDEOGRAPH_BYTES if settings.language in IDEOGRAPHIC else 1)
    return TableSize(characters // TEXT_CHARACTERS, characters)


def _share(size: TableSize, share: float) -> TableSize:
    return TableSize(round(size.documents * share), round(size.characters * share), size.answers)


def _together(sizes: Sequence[TableSize]) -> TableSize:
    return TableSize(sum(one.documents for one in sizes), sum(one.characters for one in sizes))
