"""Recipes that no one writes on purpose: circles, sizes that no machine holds, values of the wrong kind.

Each is refused in one sentence with file, line and key, before anything computes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.test_bad_recipes import GOOD, Mistake
from tests.steps import library_of

TUNED = "strategy: full\n    budget: {epochs: 1}"


def tuned(more: str) -> tuple[str, str]:
    """The stage `classify` with one more key."""
    return TUNED, f"strategy: full\n    {more}\n    budget: {{epochs: 1}}"


def more_stages(text: str) -> tuple[str, str]:
    return "variants:", f"{text}variants:"


LIKES = "".join(f"  s{one}: {{like: {f's{one - 1}' if one else 'classify'}}}\n" for one in range(1000))
INT8 = "  q: {kind: compress, start: small, corpus: task, head: sequence_classification, compression: dynamic_int8}\n"
IMPOSSIBLE = {
    "a stage that teaches itself": Mistake("teacher: classify", "teacher: small", (":25", "small → small")),
    "teachers in a circle": Mistake(
        "  report:", "  b: {like: small, teacher: c}\n  c: {like: small, teacher: b}\n  report:", ("b → c → b",)
    ),
    "a start that is a report": Mistake(*more_stages("  x: {like: classify, start: report}\n"), ("produces no model",)),
    "a teacher that is a report": Mistake(*more_stages("  x: {like: small, teacher: report}\n"), ("no model",)),
    "a thousand likes in a row": Mistake(*more_stages(LIKES), (":3", "1,004 stages", "200")),
    "no seed": Mistake(*tuned("seeds: []"), (":21", "at least one seed")),
    "the same seed twice": Mistake(*tuned("seeds: [1, 2, 1]"), (":21", "seed 1 is given twice")),
    "a negative seed": Mistake(*tuned("seeds: [-1]"), (":21", "-1 is no seed", "from 0 to")),
    "a seed of seventy bits": Mistake(*tuned("seeds: 1000000000000000000000"), (":21", "is no seed")),
    "too many seeds": Mistake(*tuned(f"seeds: {list(range(1001))}"), (":21", "1,001 seeds")),
    "an infinite rate": Mistake(*tuned("optimizer: {lr: .inf}"), (":21", "lr", "finite")),
    "an infinite decay": Mistake(*tuned("optimizer: {weight_decay: .inf}"), (":21", "weight_decay", "finite")),
    "betas beyond 1": Mistake(*tuned("optimizer: {betas: [0.9, 1.5]}"), (":21", "betas.1", "less than 1")),
    "a like that is a number": Mistake("name: good", "name: good\nlike: 5", (":2", "like", "name of a recipe")),
    "a kind that is a list": Mistake("kind: finetune", "kind: [finetune]", (":15", "kind", "name of a kind")),
    "a like that is a list": Mistake("kind: finetune", "like: [general]", (":15", "like", "name of a stage")),
    "a name that is a mapping": Mistake("name: token_mask", "name: {a: 1}", (":9", "corruption", "must be text")),
    "a negative number of layers": Mistake("num_hidden_layers: 2", "num_hidden_layers: -2", (":8", "is no size")),
    "another network than that of the start": Mistake(
        *more_stages("  x: {like: classify, start: general, backbone: bilstm}\n"), ("x.backbone", "remove backbone")
    ),
    "no heads": Mistake("num_attention_heads: 2", "num_attention_heads: 0", (":8", "is no size")),
    "a width that no machine holds": Mistake("hidden_size: 32", "hidden_size: 1000000000", (":8", "any machine")),
    "an option of a part that no machine holds": Mistake(
        "strategy: full",
        f"strategy: {{name: adapter, size: {10**18}}}",
        ("strategy.size", "too large", "the most is 1,000,000,000"),
    ),
    "a patience of a million years": Mistake(
        "budget: {epochs: 1}", f"budget: {{epochs: 1, patience: {10**12}}}", (":21", "budget.patience", "100000000")
    ),
    "a vocabulary that no machine holds": Mistake("vocab_size: 512", "vocab_size: 1000000000000", (":7", "vocab_size")),
    "a batch that no machine holds": Mistake("batch_tokens: 1024", f"batch_tokens: {10**18}", (":13", "batch_tokens")),
    "a budget of a million years": Mistake("tokens: 8192", f"tokens: {10**18}", (":13", "budget.tokens")),
    "epochs without end": Mistake("budget: {epochs: 1}", "budget: {epochs: 1.0e+18}", (":21", "budget.epochs")),
    "more labels than there are": Mistake(
        "budget: {epochs: 1}", "budget: {epochs: 1, labelled: 1000000000}", (":21", "labelled")
    ),
    "a name that is a path": Mistake("name: good", "name: ../../x", (":1", "name")),
    "a stage whose name is a path": Mistake(*more_stages("  ../x: {like: classify}\n"), ("no valid stage name",)),
    "a stage without a name": Mistake(*more_stages("  null: {like: classify}\n"), (":33", "a key is empty")),
    "variants as a list": Mistake(
        "variants:\n  hour: {general: {budget: {tokens: 16384}}}", "variants: [hour]", (":33", "variants", "mapping")
    ),
    "8 bits of 8 bits": Mistake(*more_stages(INT8 + "  q2: {like: q, start: q}\n"), ("q2", "as they are")),
    "fine-tuning of 8 bits": Mistake(*more_stages(INT8 + "  q2: {like: classify, start: q}\n"), ("q2", "as they are")),
    "a start in a recipe that there is not": Mistake("start: general", "start: regmie/task", (":16", "'regmie'")),
    "a start outside the folder": Mistake("start: general", "start: ../good/general", (":16", "no recipe '../good'")),
    "a teacher outside the folder": Mistake("teacher: classify", "teacher: ../good/x", (":25", "no recipe '../good'")),
    "a teacher of plain text": Mistake("teacher: classify", "teacher: general", (":25", "match_logits", "masked_lm")),
}


@pytest.mark.parametrize("mistake", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_is_refused_with_its_place(mistake: Mistake, tmp_path: Path) -> None:
    assert mistake.old in GOOD
    library = library_of(tmp_path, good=GOOD.replace(mistake.old, mistake.new, 1))
    with pytest.raises(RecipeError) as told:
        library.load("good", [], setting=Setting(corpora={}, tasks={}))
    message = str(told.value)
    assert "\n" not in message and "good.yaml" in message
    for part in mistake.says:
        assert part in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("seeds: [" + "1, " * 100_000 + "1]", "more than a recipe may have"),
        (re.sub("full", "full " * 60_000, GOOD, count=1), "more than a recipe may have"),
    ],
)
def test_a_file_that_would_take_minutes_is_refused_unread(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=says):
        library_of(tmp_path, good=text).load("good")
