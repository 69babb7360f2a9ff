"""A few texts as the corruption of a recipe shows them to a network: an illustration of masking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.tables import text_tables
from pipelines.errors import RecipeError
from pipelines.messages.translation import message, translatable
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from pipelines.recipe.schema import Stage

WIDTH = 40
"""Tokens of a row that are shown."""
CORRUPTED = translatable(
    "As the stage {stage} would corrupt them ({corruptions}), with a tokenizer trained on this sample."
)
NO_RECIPE = translatable("There is no recipe {recipe!r} here to show its corruption.")
NOT_LOADED = translatable("The recipe {recipe!r} cannot be loaded with this dataset: {error}.")
NO_STAGE = translatable("No stage of the recipe {recipe!r} corrupts plain text.")


@dataclass(frozen=True)
class CorruptionPreview:
    """Rows of tokens, as text and corrupted, with a caption: which stage corrupts them, or why there are none."""

    sentence: str
    values: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]] = ()

    @property
    def caption(self) -> str:
        """The caption in the current language."""
        return message(self.sentence, **self.values)


def preview(settings: DatasetSettings, root: Path, texts: Sequence[str]) -> CorruptionPreview:
    """Apply the first stage of the dataset's recipe that corrupts plain text to the first of `texts`.

    Its tokenizer is trained on `texts`; for a stage that starts from a checkpoint, the one of `quality.tokenizer` is.
    """
    from pipelines.recipe.folders import RecipeFolders
    from pipelines.recipe.lines import line_views
    from pipelines.recipe.load import Library

    recipe = {"recipe": settings.recipe}
    folders = RecipeFolders.of_project(root)
    if settings.recipe not in folders.files:
        return CorruptionPreview(NO_RECIPE, recipe)
    try:
        stages = Library(folders).load(settings.recipe, settings.variants).stages
    except RecipeError as error:
        return CorruptionPreview(NOT_LOADED, recipe | {"error": str(error)})
    plain = set(text_tables(settings))
    views = [(name, view) for name, one in stages.items() for view in line_views(one).values()]
    # a sample has texts, without the columns that are joined to them
    alone = [(name, view) for name, view in views if view.corruption and len(view.texts) < 2]
    name, stage = next(((name, view) for name, view in alone if plain & set(view.corpus)), (None, None))
    if stage is None:
        return CorruptionPreview(NO_STAGE, recipe)
    what = ", ".join(corruption.name for corruption in stage.corruption)
    values = {"stage": f"{settings.recipe}/{name}", "corruptions": what}
    return CorruptionPreview(CORRUPTED, values, _rows(stage, settings, texts))


def _rows(stage: Stage, settings: DatasetSettings, texts: Sequence[str]) -> list[dict[str, Any]]:
    from pipelines.training.batches.plain_text import token_ids
    from pipelines.training.batches.special_tokens import frame

    tokenizer = (stage.tokenizer or settings.quality.tokenizer).train([text for text in texts if text.strip()])
    fast = tokenizer.backend_tokenizer
    before, after = frame(tokenizer)
    segments = max(corruption.segments for corruption in stage.corruption)
    encoded = [fast.encode(text, add_special_tokens=False) for text in texts]
    # one row per text for one segment; two adjacent spans of a text if a corruption requires a pair
    long = [(text, one) for text, one in zip(texts, encoded, strict=True) if len(one.ids) >= segments * WIDTH][:3]
    spans = [(text, one, part) for part in range(segments) for text, one in long]
    if not spans:
        return []
    ids, starts = [], []
    for text, one, part in spans:
        span = slice(part * WIDTH, (part + 1) * WIDTH)
        words = set(stage.segmentation.word_starts(text)) if stage.segmentation is not None else set()
        begins = [not words or begin in words for begin, _ in one.offsets[span]]
        ids.append([*before, *one.ids[span], *after])
        starts.append([True] * len(before) + begins + [True] * len(after))
    rows = np.array(ids, dtype=np.int64)
    numbers = np.repeat(np.tile(np.arange(len(long)), segments)[:, None], rows.shape[1], axis=1)
    batch: dict[Field, Any] = {Field.INPUT_IDS: rows, Field.ORIGINAL_IDS: rows, Field.DOCUMENTS: numbers}
    if stage.segmentation is not None:
        batch[Field.WORD_STARTS] = np.array(starts, dtype=np.int64)
    known = token_ids(tokenizer, np.bincount(rows.ravel(), minlength=len(tokenizer)))
    random = np.random.default_rng(0)
    for corruption in stage.corruption:
        batch = corruption.apply(batch, known, random)
    shown = batch[Field.INPUT_IDS]
    return [
        {
            "text": tokenizer.decode(rows[number], skip_special_tokens=True),
            "tokens": [
                {
                    "token": token,
                    "changed": shown.shape == rows.shape and bool(shown[number, position] != rows[number, position]),
                }
                for position, token in enumerate(tokenizer.convert_ids_to_tokens(shown[number].tolist()))
            ],
        }
        for number in range(min(len(long), len(shown)))
    ]
