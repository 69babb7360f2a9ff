"""Lines that cannot be trained together are refused when the recipe is loaded: file, line, key, and what would fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.mistakes import Mistake, check_refusal, refusal
from tests.steps import library_of

GOOD = """\
name: good
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone: {name: transformer, dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2}}
    corruption: token_mask
    head: masked_lm
    objective: masked_lm
    strategy: full
    budget: {tokens: 8192, batch_tokens: 1024, length: 32}
  share:
    kind: finetune
    start: general
    strategy: full
    budget: {epochs: 1, length: 32}
    mixing: {name: alternating, pattern: [topic, topic, pairs, mlm]}
    lines:
      topic: {corpus: task, head: sequence_classification, objective: cross_entropy}
      pairs: {corpus: stsb, head: regression, objective: squared_error}
      mlm: {corpus: task_text, head: masked_lm, objective: masked_lm, corruption: token_mask}
  judge: {kind: evaluate, start: share, corpus: stsb, suite: scores}
  bytes: {like: general, tokenizer: byte_bpe}
"""
SETTING = Setting(family="text_classification", language="en", corpora={}, tasks={"stsb": "pair_regression"})


MISTAKES = {
    "a task that the dataset has not": Mistake("corpus: stsb, head", "corpus: stbs, head", (":21", "'stbs'", "'stsb'")),
    "a corpus that the dataset has not": Mistake("corpus: task_text,", "corpus: task_txt,", (":22", "'task_text'")),
    "two lines of one name": Mistake("      mlm:", "      topic:", (":22", "'topic' is given twice", "rename")),
    "a name that is none": Mistake("      mlm:", "      m.l.m:", (":19", "'m.l.m'", "letters, digits")),
    "a line with the name of another's task": Mistake("      topic:", "      stsb:", (":21", "'stsb'", "line stsb")),
    "an unknown key": Mistake("corpus: stsb, head", "corups: stsb, head", (":21", "corups", "'corpus'")),
    "a key of the stage": Mistake("corpus: stsb, head", "budget: {}, head", (":21", "'budget'", "Known:")),
    "a mixing that names no line": Mistake("[topic, topic,", "[topc, topic,", (":18", "'topic'")),
    "a mixing that leaves a line out": Mistake("pairs, mlm]", "pairs]", (":18", "never trains mlm")),
    "an unknown mixing": Mistake("name: alternating, pattern: [topic, topic, pairs, mlm]", "name: alternate", (":18",)),
    "a mixing by epochs of a budget in tokens": Mistake(
        "{epochs: 1, length: 32}\n    mixing: {name: alternating, pattern: [topic, topic, pairs, mlm]}",
        "{tokens: 4096, length: 32}\n    mixing: annealed",
        (":18", "annealed", "budget counts tokens"),
    ),
    "a mixing without lines": Mistake(
        "    head: masked_lm\n", "    head: masked_lm\n    mixing: proportional\n", (":10",)
    ),
    "a head that reads another family": Mistake(
        "stsb, head: regression", "stsb, head: sequence_classification", (":21", "pair_regression", "regression")
    ),
    "a head that needs another tokenizer": Mistake(
        "head: masked_lm, objective: masked_lm, corruption: token_mask}",
        "head: masked_lm, objective: masked_lm, corruption: sentinel_spans}",
        (":22", "sentinels", "tokenizers that fit"),
    ),
    "two heads on an encoder-decoder": Mistake(
        "head: sequence_classification, objective: cross_entropy",
        "head: text_to_text, objective: sequence_to_sequence",
        (":20", "encoder-decoder", "text_to_text"),
    ),
    "a signal that no head gives": Mistake(
        "objective: squared_error", "objective: cross_entropy", (":21", "needs labels")
    ),
    "labels in a stage on plain text": Mistake(
        "    kind: finetune\n    start: general", "    kind: adapt_task\n    start: general", (":20", "finetune stage")
    ),
    "no labels in a finetune stage": Mistake(
        "      topic: {corpus: task, head: sequence_classification, objective: cross_entropy}\n"
        "      pairs: {corpus: stsb, head: regression, objective: squared_error}\n",
        "      topic: {corpus: general, head: masked_lm, objective: masked_lm, corruption: token_mask}\n"
        "      pairs: {corpus: domain, head: masked_lm, objective: masked_lm, corruption: token_mask}\n",
        (":19", "give one line a task"),
    ),
    "an unknown teacher": Mistake(
        "objective: squared_error", "objective: squared_error, teacher: genral", (":21", "'genral'", "'general'")
    ),
    "a teacher that reads other tokens": Mistake(
        "objective: squared_error}",
        "objective: [squared_error, match_hidden], teacher: bytes}",
        (
            ":21: stages.share.lines.pairs.teacher: bytes reads tokens of {name: byte_bpe} learned from general",
            "those of {name: wordpiece, vocab_size: 512} learned from general",
            "let both start from one stage, or learn one tokenizer from the same corpus",
            "teacher_vocabulary: shared_tokens",
        ),
    ),
    "a vocabulary of no teacher": Mistake(
        "objective: squared_error}",
        "objective: squared_error, teacher_vocabulary: shared_tokens}",
        (":21: stages.share.lines.pairs.teacher_vocabulary: this maps the tokens of a teacher, and there is none",),
    ),
    "a report on no task of several": Mistake("corpus: stsb, suite", "corpus: domain, suite", (":23", "stsb", "task")),
    "modules of each of two lines that one network serves": Mistake(
        "    strategy: full\n    budget: {tokens: 8192, batch_tokens: 1024, length: 32}\n",
        "    strategy: projected_attention\n    budget: {tokens: 8192, batch_tokens: 1024, length: 32}\n"
        "    lines: {one: {}, two: {corpus: domain}}\n",
        (
            ":11: stages.general.strategy: projected_attention adds modules to the network of each line, and one",
            "(masked_lm) are equal and answer no task; give the lines heads of their own",
        ),
    ),
    "layers removed from beside modules of lines": Mistake(
        "strategy: full\n    budget: {epochs: 1",
        "strategy: projected_attention\n    compression: select_layers\n    budget: {epochs: 1",
        (
            ":17: stages.share.compression: select_layers removes layers, beside which strategy projected_attention",
            "compress first, and add them in a stage that starts from the smaller network",
        ),
    ),
    "a weight of nothing": Mistake(
        "objective: squared_error", "objective: squared_error, weight: 0", (":21", "weight")
    ),
}


def test_the_good_recipe_is_good(tmp_path: Path) -> None:
    recipe = library_of(tmp_path, good=GOOD).load("good", setting=SETTING)
    assert tuple(recipe.stages["share"].lines) == ("topic", "pairs", "mlm")


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_names_its_line_and_what_would_fit(mistake: Mistake, tmp_path: Path) -> None:
    check_refusal(refusal(tmp_path, "good", mistake.made_in(GOOD), SETTING), mistake.says)
