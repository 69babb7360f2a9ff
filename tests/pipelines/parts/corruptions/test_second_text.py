"""Documents of two texts: the first is read, the second written, both of one document."""

from __future__ import annotations

import numpy as np

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.second_text import IGNORED, SOURCE_IDS, SecondText
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import END, token_ids

DOCUMENTS = ([10, 11], [20, 21, 22]), ([12], [23, 24]), ([13, 14, 15], [25])


def row(begun: bool = True) -> Arrays:
    """The end of a document, three whole ones, and the first text of another."""
    ids, documents, texts = ([19, END], [0, 0], [1, 1]) if begun else ([], [], [])
    for number, pair in enumerate(DOCUMENTS, 1):
        for text, words in enumerate(pair):
            ids, documents = [*ids, *words, END], [*documents, *[number] * (len(words) + 1)]
            texts = [*texts, *[text] * (len(words) + 1)]
    ids, documents, texts = [*ids, 16, 17], [*documents, 4, 4], [*texts, 0, 0]
    fields = {Field.INPUT_IDS: ids, Field.DOCUMENTS: documents, Field.TEXTS: texts}
    return {name: np.asarray([value], dtype=np.int64) for name, value in fields.items()}


def drawn(given: Arrays, part: SecondText, draws: int = 100) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    found = set()
    for seed in range(draws):
        result = part.apply(given, token_ids(), np.random.default_rng(seed))
        source, target = (result[name][0] for name in (SOURCE_IDS, Field.TARGET_IDS))
        found.add((tuple(source[source != IGNORED].tolist()), tuple(target[target != IGNORED].tolist())))
    return found


def test_every_whole_document_is_drawn_and_no_other() -> None:
    assert drawn(row(), SecondText()) == {(tuple(first), tuple(second)) for first, second in DOCUMENTS}
    # the document that begins a row may have begun before it
    assert drawn(row(begun=False), SecondText()) == {(tuple(first), tuple(second)) for first, second in DOCUMENTS[1:]}


def test_texts_are_cut_and_special_tokens_are_in_none() -> None:
    cut = drawn(row(), SecondText(longest=2))
    assert cut == {((10, 11), (20, 21)), ((12,), (23, 24)), ((13, 14), (25,))}


def test_a_row_without_a_whole_document_has_nothing_to_write() -> None:
    given = {name: value[:, :4] for name, value in row().items()}
    result = SecondText().apply(given, token_ids(), np.random.default_rng(0))
    assert (result[Field.TARGET_IDS] == IGNORED).all()
    assert result[SOURCE_IDS][0].tolist() == [19, IGNORED, IGNORED, IGNORED]
