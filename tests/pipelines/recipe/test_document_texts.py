"""Documents of several texts that a recipe cannot have are refused when it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.mistakes import Mistake, check_refusal, refusal
from tests.steps import library_of

GOOD = """\
name: good
stages:
  general:
    kind: pretrain
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone: {name: transformer, embeddings: [languages],
               dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2}}
    head: masked_lm
    objective: masked_lm
    strategy: full
    budget: {tokens: 8192, batch_tokens: 1024, length: 32}
    mixing: alternating
    lines:
      en:
        corpus: general
        annotations: {name: languages, order: [en, zh], of: en}
        corruption: token_mask
      tlm:
        corpus: parallel
        texts: [text, translation]
        annotations: {name: languages, order: [en, zh], of: {text: en, translation: zh}}
        layout: packed_documents
        corruption: [restart_positions, token_mask]
"""
SETTING = Setting(
    family="text_classification",
    language="en",
    corpora={"parallel": {"translation": "string"}, "pages": {"boxes": "list<list<int64>>"}, "short": {}},
    tasks={},
)


MISTAKES = {
    "a corpus without that column": Mistake(
        "corpus: parallel", "corpus: short",
        (":20: ", "the corpus 'short' has no column 'translation', only collection, source, text",
         "Declare it under corpora.short.columns of the dataset, or read a corpus that has it: parallel"),
    ),
    "a column of a corpus that can have none": Mistake(
        "corpus: parallel", "corpus: domain",
        (":20: ", "the corpus 'domain' has no column 'translation'", "declared for named corpora", "parallel"),
    ),
    "a column with another name": Mistake(
        "texts: [text, translation]", "texts: [text, translations]", (":20: ", "Did you mean 'translation'?")
    ),
    "a column that is no text": Mistake(
        "corpus: parallel\n        texts: [text, translation]", "corpus: pages\n        texts: [text, boxes]",
        (":20: ", "the column 'boxes' of the corpus 'pages' holds list<list<int64>>, and string is read"),
    ),
    "a column twice": Mistake("[text, translation]", "[text, text]", (":20: ", "text, text names a column twice")),
    "positions of one text": Mistake(
        "        texts: [text, translation]\n", "",
        (":22: ", "restart_positions needs texts", "as in texts: [text, translation]"),
    ),
    "an embedding without its channel": Mistake(
        "        annotations: {name: languages, order: [en, zh], of: {text: en, translation: zh}}\n", "",
        ("the embedding languages reads the channel 'languages'", "annotations that can: languages"),
    ),
    "positions that a layout counts": Mistake(
        "[restart_positions, token_mask]", "[{name: shift_positions, positions: 64}, token_mask]",
        (":23: ", "shift_positions provides position_ids, which layout packed_documents provides already"),
    ),
    "a head that needs another tokenizer": Mistake(
        "corruption: token_mask", "corruption: sentinel_spans",
        (":17: ", "sentinels", "tokenizers that fit"),
    ),
    "an annotation of a column that is not there": Mistake(
        "of: en}", "of: {tranlation: zh}}",
        (":16: ", "the corpus 'general' has no column 'tranlation'"),
    ),
}  # fmt: skip


def test_the_good_recipe_is_good(tmp_path: Path) -> None:
    stage = library_of(tmp_path, good=GOOD).load("good", setting=SETTING).stages["general"]
    assert stage.lines["tlm"].texts == ("text", "translation")
    assert "texts" not in stage.model_dump() and "texts" not in stage.model_dump()["lines"]["en"]


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_names_its_line_and_what_would_fit(mistake: Mistake, tmp_path: Path) -> None:
    check_refusal(refusal(tmp_path, "good", mistake.made_in(GOOD), SETTING), mistake.says)


def test_labelled_examples_join_no_columns(tmp_path: Path) -> None:
    classify = """\
  classify: {kind: finetune, start: general, corpus: task, texts: [text], head: sequence_classification,
             annotations: {name: languages, order: [en, zh], of: en}, objective: cross_entropy, strategy: full,
             budget: {epochs: 1, length: 32}}
"""
    with pytest.raises(RecipeError, match=r"texts: columns of plain text make up a document, .* remove texts"):
        library_of(tmp_path, good=GOOD + classify).load("good", setting=SETTING)
