"""Check that the documents of a stage have neighbouring sentences, where its corruption pairs those."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from pipelines.corpora.shards.example_table import ExampleTable
from pipelines.errors import DataError
from pipelines.parts.corruptions import Corruption
from pipelines.recipe.lines import line_views
from pipelines.recipe.schema import Stage
from pipelines.vocabulary import Field

SOURCE_IDS = Field.of_rows("source_ids")
"""The text that is read of each row, where a corruption writes another one than the row."""
ENDS = ".!?。！？"
"""Characters that end a sentence."""
_NEIGHBOURS = re.compile(rf"[{re.escape(ENDS)}]\s*[^\s{re.escape(ENDS)}]")


def check_neighbours(stage: Stage, name: str, tables: Mapping[str, Path]) -> None:
    """Raise DataError for a line of the stage called `name` whose corpora hold no two sentences of one document.

    The corruption writes no target for a row without neighbours, so that nothing would be learnt in silence. `tables`
    are those that the stage reads, by name; of those that exist, documents are read up to the first with two sentences.
    """
    for line, view in line_views(stage).items():
        if not stage.trains or not any(map(_pairs_sentences, view.corruption)):
            continue
        paths = [tables[word] for word in view.corpus if word in tables and tables[word].exists()]
        columns = list(view.texts) or ["text"]
        rows = chain.from_iterable(ExampleTable(path, columns) for path in paths)
        if paths and not any(_NEIGHBOURS.search(str(row[column])) for row in rows for column in columns):
            where = f"{name}, line {line}" if stage.lines else name
            raise DataError(
                f"stage {where}: no document of {', '.join(map(str, paths))} has two sentences, and "
                f"{' and '.join(one.name for one in view.corruption if _pairs_sentences(one))} pairs neighbours: it "
                f"would train on nothing. Give the corpus documents of several sentences, which end with one of "
                f"{' '.join(ENDS)}, such as paragraphs in place of lines"
            )


def _pairs_sentences(corruption: Corruption) -> bool:
    """Whether it writes a source and a target that it looks for in the documents of a row; the texts of a document of
    several, such as translations, need no neighbours."""
    return {SOURCE_IDS, Field.TARGET_IDS} <= corruption.provides and Field.TEXTS not in corruption.needs
