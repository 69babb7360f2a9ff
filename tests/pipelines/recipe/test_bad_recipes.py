"""Whatever is wrong with a recipe is told before anything computes: file, line, key, and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.mistakes import Mistake, check_refusal, refusal
from tests.steps import RECIPES, library_of, plan_of

GOOD = """\
name: good
paper: arXiv:1810.04805
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone: {name: transformer, dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2}}
    corruption: {name: token_mask, rate: 0.15}
    head: masked_lm
    objective: masked_lm
    strategy: full
    budget: {tokens: 8192, batch_tokens: 1024, length: 32}
  classify:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    budget: {epochs: 1}
  small:
    kind: compress
    start: classify
    teacher: classify
    corpus: task
    head: sequence_classification
    compression: select_layers
    objective: match_logits
    strategy: full
    budget: {epochs: 1}
  report: {kind: evaluate, start: [classify, small], corpus: task, suite: baselines}
variants:
  hour: {general: {budget: {tokens: 16384}}}
"""


MISTAKES = {
    "unknown key of a stage": Mistake("corpus: general", "corpsu: general", (":6", "corpsu", "Did you mean 'corpus'?")),
    "unknown key of a budget": Mistake("{tokens: 8192,", "{tokens: 8192, lenght: 3,", (":13", "lenght", "'length'")),
    "unknown key of a recipe": Mistake("paper:", "papers:", (":2", "papers", "Did you mean 'paper'?")),
    "unknown component": Mistake("objective: masked_lm", "objective: maskd_lm", (":11", "maskd_lm", "'masked_lm'")),
    "unknown key of a component": Mistake("rate: 0.15", "rat: 0.15", (":9", "token_mask", "'rat'", "'rate'")),
    "component without a name": Mistake("{name: token_mask, rate: 0.15}", "{rate: 0.15}", (":9", "'name'")),
    "value out of range": Mistake("rate: 0.15", "rate: 1.5", (":9", "rate", "less than 1")),
    "value of another type": Mistake("tokens: 8192", "tokens: many", (":13", "budget.tokens", "integer")),
    "unknown kind": Mistake("kind: finetune", "kind: finetuning", (":15", "kind", "'finetune'")),
    "unknown corpus": Mistake("corpus: general", "corpus: generic", (":6", "Did you mean 'general'?", "domain")),
    "tokens and epochs": Mistake("{tokens: 8192,", "{tokens: 8192, epochs: 2,", (":13", "tokens or epochs, not both")),
    "unknown start": Mistake("start: general", "start: genral", (":16", "genral", "Did you mean 'general'?")),
    "circular start": Mistake(
        "kind: pretrain\n", "kind: pretrain\n    start: classify\n", ("circular", "general → classify → general")
    ),
    "start missing": Mistake("    start: general\n", "", (":14", "start", "name the stage it starts from")),
    "corpus missing": Mistake("    corpus: general\n", "", (":4", "corpus", "general, domain, task_text or task")),
    "labels as plain text": Mistake("corpus: general", "corpus: task", (":6", "task_text")),
    "fine-tuning on plain text": Mistake(
        "start: general\n    corpus: task", "start: general\n    corpus: domain", (":17", "corpus: task")
    ),
    "no tokenizer": Mistake("    tokenizer: {name: wordpiece, vocab_size: 512}\n", "", (":4", "tokenizer")),
    "no corruption provides it": Mistake(
        "corruption: {name: token_mask, rate: 0.15}", "corruption: []", (":11", "masked_labels", "token_mask")
    ),
    "the head does not say it": Mistake("objective: cross_entropy", "objective: masked_lm", (":19", "masked_labels")),
    "the head lacks a signal": Mistake(
        "objective: masked_lm", "objective: match_logits", (":11", "logits", "masked_lm")
    ),
    "teacher missing": Mistake("    teacher: classify\n", "", ("teacher", "name the teacher stage")),
    "teacher unknown": Mistake("teacher: classify", "teacher: clasify", (":25", "clasify", "Did you mean 'classify'?")),
    "strategy missing": Mistake(
        "    strategy: full\n    budget: {tokens", "    budget: {tokens", (":4", "strategy", "full")
    ),
    "budget missing": Mistake("    budget: {epochs: 1}\n  small", "  small", (":14", "budget", "epochs")),
    "compression missing": Mistake("    compression: select_layers\n", "", (":22", "compression")),
    "no calibration batches": Mistake(
        "compression: select_layers\n    objective: match_logits\n    strategy: full\n    budget: {epochs: 1}",
        "compression: head_pruning\n    objective: cross_entropy\n    budget: {tokens: 0, calibration: 0}",
        (":30", "calibration: 0 batches are an empty calibration set", "head_pruning", "1 or more"),
    ),
    "fewer than no calibration batches": Mistake(
        "budget: {epochs: 1}\n  report",
        "budget: {epochs: 1, calibration: -1}\n  report",
        (":31", "calibration", "greater than or equal to 0"),
    ),
    "no corpus to calibrate on": Mistake(
        "corpus: task\n    head: sequence_classification\n    compression: select_layers",
        "head: sequence_classification\n    compression: head_pruning",
        (":22", "corpus", "head_pruning measures batches of the stage's corpus"),
    ),
    "no loss to differentiate": Mistake(
        "compression: select_layers", "compression: head_pruning", (":29", "head_pruning", "cross_entropy", "tokens: 0")
    ),
    "few bits, then training": Mistake(
        "compression: select_layers",
        "compression: group_quantization",
        (":28", "group_quantization comes after training", "leave out the objective"),
    ),
    "fewer layers below a classifier of each": Mistake(
        "    teacher: classify\n    corpus: task\n    head: sequence_classification\n    compression: select_layers\n"
        "    objective: match_logits",
        "    corpus: task\n    head: early_exit_classification\n    compression: select_layers\n"
        "    objective: exit_cross_entropy",
        (":27", "select_layers removes layers", "early_exit_classification has a classifier after each of them"),
    ),
    "few bits of a sparse file": Mistake(
        "compression: select_layers\n    objective: match_logits\n    strategy: full\n    budget: {epochs: 1}",
        "compression: [magnitude_pruning, sparse_storage, group_quantization]\n    budget: {tokens: 0}",
        (":28", "sparse_storage stores the weights as they are served", "group_quantization cannot compress further"),
    ),
    "layers after heads": Mistake(
        "compression: select_layers",
        "compression: [{name: head_pruning, order: random}, select_layers]",
        (":28", "select_layers would renumber or remove what head_pruning has changed", "apply select_layers first"),
    ),
    "widths after single weights": Mistake(
        "compression: select_layers",
        "compression: [magnitude_pruning, feed_forward_widths]",
        (
            ":28",
            "feed_forward_widths would renumber or remove what magnitude_pruning has changed",
            "single weights, bits",
        ),
    ),
    "all weights pruned": Mistake(
        "compression: select_layers",
        "compression: {name: magnitude_pruning, share: 1.0}",
        (":28", "magnitude_pruning', share", "less than 1"),
    ),
    "pruned in the course of no training": Mistake(
        "compression: select_layers\n    objective: match_logits\n    strategy: full\n    budget: {epochs: 1}",
        "compression: {name: magnitude_pruning, gradually: 0.5}\n    budget: {tokens: 0}",
        (":28", "in the course of the training, and this stage does not train"),
    ),
    "pruned while training may stop early": Mistake(
        "compression: select_layers\n    objective: match_logits\n    strategy: full\n    budget: {epochs: 1}",
        "compression: {name: magnitude_pruning, gradually: 0.5}\n    objective: match_logits\n    strategy: full\n"
        "    budget: {epochs: 1, patience: 2}",
        (":31", "patience: magnitude_pruning is complete after 50% of the steps", "leave patience out"),
    ),
    "training weights of few bits": Mistake(
        "  report: {kind",
        "  bits: {kind: compress, start: classify, corpus: task, head: sequence_classification,\n"
        "    compression: group_quantization}\n"
        "  more: {like: classify, start: bits}\n  report: {kind",
        (":34", "start", "'bits' stores its weights as they are served (group_quantization)", "this stage trains"),
    ),
    "bits of a training that was not": Mistake(
        "  report: {kind",
        "  bits: {kind: compress, start: classify, corpus: task, head: sequence_classification,\n"
        "    compression: {name: integer_codes, bits: trained}}\n  report: {kind",
        (
            ":33",
            "compression",
            "integer_codes: bits: trained, and no stage before has trained",
            "give a number of bits",
        ),
    ),
    "other bits than those of the training": Mistake(
        "compression: select_layers\n    objective: match_logits\n    strategy: full\n    budget: {epochs: 1}",
        "compression: rounded_training\n    objective: match_logits\n    strategy: full\n    budget: {epochs: 1}\n"
        "  bits: {kind: compress, start: small, corpus: task, head: sequence_classification,\n"
        "    compression: {name: integer_codes, bits: 3}}",
        (":33", "compression", "integer_codes: a stage before has trained the weights", "write bits: trained"),
    ),
    "a mean that is a width": Mistake(
        "compression: select_layers",
        "compression: {name: group_quantization, bits: {mean: 4}}",
        (":28", "bits", "write bits: 4"),
    ),
    "judging what has no labels": Mistake("[classify, small]", "[classify, general]", (":32", "'general'", "finetune")),
    "judging nothing known": Mistake("[classify, small]", "[classify, smal]", (":32", "smal", "Did you mean 'small'?")),
    "suite missing": Mistake(", suite: baselines", "", (":32", "suite")),
    "not YAML": Mistake("    kind: pretrain", "    kind: [pretrain", ("not valid YAML",)),
    "key given twice": Mistake(
        "kind: pretrain", "kind: pretrain\n    kind: finetune", (":6", "'kind' is given twice", "remove")
    ),
    "a stage that is a word": Mistake(
        "  report: {kind: evaluate, start: [classify, small], corpus: task, suite: baselines}",
        "  report: later",
        (":32", "mapping"),
    ),
    "no stages": Mistake(GOOD, "name: good\n", (":1", "'stages'")),
    "not a mapping": Mistake(GOOD, "- general\n", (":1", "mapping")),
    "empty file": Mistake(GOOD, "", (":1", "mapping")),
    "variant of an unknown stage": Mistake(
        "hour: {general: {budget: {tokens: 16384}}}", "hour: {genral: {budget: {tokens: 16384}}}", (":34", "genral")
    ),
    "variant that cannot work": Mistake("{budget: {tokens: 16384}}", "{corruption: []}", (":11", "masked_labels")),
    "unknown like": Mistake("name: good", "name: good\nlike: regmie", (":2", "regmie", "Did you mean 'regime'?")),
    "like in a circle": Mistake("name: good", "name: good\nlike: good", ("circular", "good → good")),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_place_and_cure(mistake: Mistake, tmp_path: Path) -> None:
    variants = ["hour"] if "16384" in mistake.old else []
    regime = (RECIPES / "regime.yaml").read_text()
    setting = Setting(corpora={}, tasks={})
    check_refusal(refusal(tmp_path, "good", mistake.made_in(GOOD), setting, variants, regime=regime), mistake.says)


def test_the_good_recipe_is_good(tmp_path: Path, sources: dict[str, DataSource]) -> None:
    plan = plan_of(library_of(tmp_path, good=GOOD), "good", sources, "hour")
    assert [step.label for step in plan.steps] == ["general", "classify", "small", "report"]
    assert plan.steps[0].stage.budget.tokens == 16384


@pytest.mark.parametrize(
    ("name", "variants", "says"),
    [
        ("goood", [], ("there is no recipe 'goood'", "Did you mean 'good'?")),
        ("good", ["hours"], ("there is no variant 'hours'", "Did you mean 'hour'?")),
        ("missing/folder/my.yaml", [], ("no recipe",)),
    ],
)
def test_what_is_asked_for_must_exist(name: str, variants: list[str], says: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as told:
        library_of(tmp_path, good=GOOD).load(name, variants)
    assert all(part in str(told.value) for part in says)


def test_a_budget_from_params_yaml_names_its_stage(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no stage 'genral'. Did you mean 'general'?"):
        library_of(tmp_path, good=GOOD).load("good", budget={"genral": {"tokens": 1}})


def test_a_file_that_is_not_utf_8_names_the_byte(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"name: caf\xe9\n")
    with pytest.raises(RecipeError, match=r"bad.yaml: not UTF-8 at byte 9"):
        library_of(tmp_path).load("bad")


def test_a_checkpoint_that_is_not_there_is_told_when_planning(tmp_path: Path, sources: dict[str, DataSource]) -> None:
    text = GOOD.replace("kind: pretrain", "kind: pretrain\n    start: {checkpoint: 'package:no_such_package/model'}")
    with pytest.raises(RecipeError, match="no_such_package is not installed"):
        plan_of(library_of(tmp_path, good=text), "good", sources)
    text = GOOD.replace("kind: pretrain", f"kind: pretrain\n    start: {{checkpoint: '{tmp_path}'}}")
    with pytest.raises(RecipeError, match="no config.json"):
        plan_of(library_of(tmp_path, good=text), "good", sources)


def test_inheritance_takes_what_is_omitted_and_nothing_else(tmp_path: Path) -> None:
    text = GOOD.replace(
        "  classify:\n",
        "  domain: {kind: adapt_domain, start: general, corpus: domain, budget: {epochs: 2}, optimizer: {lr: 0.1}}\n  "
        "classify:\n",
    ).replace("start: general\n    corpus: task", "start: domain\n    corpus: task")
    stages = library_of(tmp_path, good=text).load("good").stages
    assert stages["domain"].corruption == stages["general"].corruption
    assert (stages["domain"].budget.tokens, stages["domain"].budget.epochs, stages["domain"].budget.length) == (
        None,
        2,
        32,
    )
    assert stages["domain"].optimizer.lr == 0.1
    assert stages["classify"].backbone == stages["general"].backbone and stages["classify"].corruption == ()
    assert stages["classify"].optimizer.lr != 0.1, "a finetune stage starts its own schedule"
