"""Annotations that cannot work are refused when a recipe is loaded: file, line, reason, and what would fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import GPT, Refused, labelled, written
from tests.steps import library_of

LEXICON = "    annotations: {{name: lexicon, channel: polarity, file: {}, values: [negative, positive]}}"
LANGUAGES = "{name: languages, order: [en, zh], of: en}"


CASES = {
    "a lexicon that is not there": Refused(
        written(LEXICON.format("no.tsv")), (":16: ", "annotations: lexicon: there is no file no.tsv; give a path")
    ),
    "two makers of one channel": Refused(
        written(f"    annotations: [{LANGUAGES}, {LANGUAGES.replace('of: en', 'of: zh')}]"),
        (":16: ", "two parts of this stage make the channel 'languages'; keep one"),
    ),
    "boxes of a text without any": Refused(
        labelled("    annotations: [boxes]"),
        (":24: ", "boxes reads the columns boxes, tokens, and an example of text_classification has no boxes, tokens"),
        "text_classification",
    ),
    "boxes that a stage inherits": Refused(
        labelled(head="tagging", objective="tag_cross_entropy").replace(
            "    strategy: full\n", "    strategy: full\n    annotations: [boxes]\n", 1
        ),
        ("boxes reads the columns boxes, tokens, and an example of tagging has no boxes, only tags, tokens",),
        "tagging",
    ),
    "an embedding without its channel": Refused(
        written(backbone="{name: transformer, embeddings: [languages]}"),
        (
            ":10: ",
            "the embedding languages reads the channel 'languages', which no annotation of this stage makes",
            "annotations that can: languages, languages_by_script, lexicon, ",
        ),
    ),
    "a channel whose values exceed its table": Refused(
        written(
            "    annotations: {name: languages, order: [en, zh, fr], of: en}",
            backbone="{name: transformer, embeddings: [{name: languages, size: 2}]}",
        ),
        (":10: ", "languages has 2 rows, and the channel 'languages' values up to 2; give the embedding size: 3"),
    ),
    "a channel of another shape": Refused(
        written(
            "    annotations: {name: word_column, channel: boxes, column: rows, largest: 9}",
            backbone="{name: transformer, embeddings: [boxes]}",
        ),
        (":10: ", "the embedding boxes reads 4 numbers for each token, and the channel 'boxes' has one number"),
    ),
    "vectors for an embedding that looks numbers up": Refused(
        written(
            "    annotations: {name: vector_column, channel: languages, column: seen, width: 8}",
            backbone="{name: transformer, embeddings: [languages]}",
        ),
        (":10: ", "languages looks whole numbers up, and the channel 'languages' has a vector for each token; use the"),
    ),
    "numbers for an embedding of vectors": Refused(
        written(
            "    annotations: {name: word_column, channel: vectors, column: rows, largest: 9}",
            backbone="{name: transformer, embeddings: {name: vectors, size: 8}}",
        ),
        (":10: ", "vectors projects vectors, and the channel 'vectors' has whole numbers; use the annotation that was"),
    ),
    "vectors of another width": Refused(
        written(
            "    annotations: {name: vector_column, column: seen, width: 16}",
            backbone="{name: transformer, embeddings: {name: vectors, size: 8}}",
        ),
        (
            ":10: ",
            "vectors reads 8 numbers for each token, and the channel 'vectors' has 16 numbers; give the",
            "size: 16",
        ),
    ),
    "vectors that a task has not": Refused(
        labelled("    annotations: {name: vector_column, column: seen, width: 16}"),
        (":24: ", "vector_column reads the columns seen, tokens, and an example of text_classification has no seen"),
        "text_classification",
    ),
    "an embedding for two inputs": Refused(
        written(backbone="{name: transformer, architecture: t5, embeddings: [boxes]}"),
        (":10: ", "an encoder-decoder (transformer t5) has two inputs, so boxes cannot be added", "transformer bert"),
    ),
    "an embedding on a backbone that takes none": Refused(
        written(backbone="{name: awd_lstm, embeddings: [languages]}"),
        (":10: ", "backbone 'awd_lstm' has no key 'embeddings'"),
    ),
    "an embedding named twice": Refused(
        written(backbone="{name: transformer, embeddings: [boxes, boxes]}"), (":10: ", "boxes is named twice; keep one")
    ),
    "a head that leaves channels out": Refused(
        labelled(
            general={
                **GPT,
                "backbone": "{name: transformer, architecture: gpt2, embeddings: [languages]}",
                "segmentation": f"null\n    annotations: {LANGUAGES}",
            },
            head="continuation",
            objective="sequence_to_sequence",
        ),
        (
            "head: continuation does not put channels alongside the tokens",
            "crf_tagging, ",
            ", multiple_choice, ",
        ),
        "text_classification",
    ),
    "an unknown annotation": Refused(
        written("    annotations: [boxs]"), (":16: ", "no annotation is called 'boxs'. Did you mean 'boxes'?")
    ),
    "a language that is not one of them": Refused(
        written("    annotations: {name: languages, order: [en, zh], of: fr}"), (":16: ", "'fr' is not in order")
    ),
    "a channel with the name of a field": Refused(
        written("    annotations: {name: word_column, channel: labels, column: tags, largest: 3}"),
        (":16: ", "a batch already has a field 'labels': give the channel another name"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused_in_one_sentence(case: str, tmp_path: Path) -> None:
    wrong = CASES[case]
    message = refusal(tmp_path, "meeting", wrong.recipe, Setting(wrong.family))
    check_refusal(message, (str(tmp_path), *wrong.says))


def test_a_damaged_lexicon_is_named_with_its_line(tmp_path: Path) -> None:
    lexicon = tmp_path / "polarity.tsv"
    lexicon.write_text("bad\tnegative\ngood\tpositiv\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r":16: .*polarity\.tsv:2: expected a word, .* Did you mean 'positive'\?"):
        library_of(tmp_path, meeting=written(LEXICON.format(lexicon))).load("meeting")
    lexicon.write_text("bad\tnegative\n", encoding="utf-8")
    stage = library_of(tmp_path, meeting=written(LEXICON.format(lexicon))).load("meeting").stages["general"]
    assert [one.name for one in stage.annotations] == ["lexicon"]


def test_annotations_are_inherited_and_leave_no_trace_where_there_are_none(tmp_path: Path) -> None:
    recipe = written(
        f"    annotations: {LANGUAGES}",
        "  domain: {kind: adapt_domain, start: general, corpus: domain}",
        "  bare: {kind: adapt_domain, start: general, corpus: domain, annotations: []}",
    )
    stages = library_of(tmp_path, meeting=recipe).load("meeting").stages
    assert stages["domain"].annotations == stages["general"].annotations != ()
    assert stages["bare"].annotations == () and "annotations" not in stages["bare"].model_dump()
