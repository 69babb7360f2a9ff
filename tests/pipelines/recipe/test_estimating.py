"""Counting and gradients exclude each other: a recipe that mixes them is refused when it is loaded, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.lineage.provenance import DataSource
from pipelines.recipe.entries import COUNTING
from pipelines.recipe.kinds import Kind
from pipelines.recipe.profiles import smoke
from pipelines.recipe.schema import Stage
from tests.pipelines.recipe.mistakes import Mistake, check_refusal, refusal
from tests.steps import RECIPES, library_of, plan_of

COUNTED = """\
name: counted
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: words, vocab_size: 512}
    backbone: {name: ngram, order: 2}
    head: causal_lm
    estimate: kneser_ney
  domain: {kind: adapt_domain, start: {untrained: general}, corpus: domain}
  neural:
    kind: pretrain
    corpus: general
    tokenizer: {name: words, vocab_size: 512}
    backbone: {name: awd_lstm, hidden_size: 16, inner_size: 16}
    head: causal_lm
    objective: causal_lm
    strategy: full
    budget: {tokens: 8192}
  report: {kind: evaluate, start: [general, domain], corpus: task, suite: perplexity}
"""


MISTAKES = {
    "a counted backbone asked to train by gradient": Mistake(
        "    estimate: kneser_ney\n",
        "    objective: causal_lm\n    strategy: full\n    budget: {tokens: 8192}\n",
        (":9", "objective", "the backbone ngram is counted", "kneser_ney", "awd_lstm", "transformer gpt2"),
    ),
    "an estimate and an objective": Mistake(
        "estimate: kneser_ney",
        "estimate: kneser_ney\n    objective: causal_lm",
        (":10", "objective", "remove objective"),
    ),
    "an estimate and a strategy": Mistake(
        "estimate: kneser_ney", "estimate: kneser_ney\n    strategy: full", (":10", "strategy", "one pass of counting")
    ),
    "an estimate and an optimizer": Mistake(
        "estimate: kneser_ney", "estimate: kneser_ney\n    optimizer: {lr: 1.0}", (":10", "optimizer", "no effect")
    ),
    "an estimate and a corruption": Mistake(
        "estimate: kneser_ney", "estimate: kneser_ney\n    corruption: token_mask", (":10", "corruption", "no effect")
    ),
    "an estimate of translations without pairs": Mistake(
        "backbone: {name: ngram, order: 2}\n    head: causal_lm\n    estimate: kneser_ney",
        "backbone: prototype_vectors\n    head: prototype_vector\n    estimate: translation_prototypes",
        (":3", "texts", "translation_prototypes", "texts: [text, translation]"),
    ),
    "vectors of two languages without pairs": Mistake(
        "backbone: {name: ngram, order: 2}\n    head: causal_lm\n    estimate: kneser_ney",
        "backbone: word_vectors\n    head: noise_prediction\n    estimate: projected_vectors",
        (":3", "texts", "projected_vectors", "texts: [text, translation]"),
    ),
    "vectors of one language that are no vectors": Mistake(
        "estimate: kneser_ney",
        "estimate: {name: projected_vectors, vectors: kneser_ney}",
        (":9", "vectors", "kneser_ney gives no vector to each word"),
    ),
    "fewer contexts than clusters": Mistake(
        "backbone: {name: ngram, order: 2}\n    head: causal_lm\n    estimate: kneser_ney",
        "backbone: prototype_vectors\n    head: prototype_vector\n    estimate: {name: word_prototypes, fewest: 5}",
        (":9", "fewest", "5 contexts cannot make 10 clusters", "lower clusters"),
    ),
    "an estimate in epochs": Mistake(
        "estimate: kneser_ney", "estimate: kneser_ney\n    budget: {epochs: 2}", (":10", "epochs", "once", "tokens")
    ),
    "an estimate of nothing": Mistake(
        "estimate: kneser_ney", "estimate: kneser_ney\n    budget: {tokens: 0}", (":10", "no text")
    ),
    "a backbone that learns by gradient": Mistake(
        "backbone: {name: ngram, order: 2}",
        "backbone: {name: awd_lstm}",
        (":9", "estimate", "awd_lstm", "not counted", "an objective and a strategy", "fits: ngram"),
    ),
    "an estimate of other weights": Mistake(
        "estimate: kneser_ney",
        "estimate: lsa",
        (":9", "estimate", "static", "fits: word_vectors", "ngram: arpa, kneser_ney"),
    ),
    "an order that no table has": Mistake("order: 2", "order: 0", (":7", "order", "greater than or equal to 1")),
    "a misspelt estimate": Mistake("kneser_ney", "knesser_ney", (":9", "Did you mean 'kneser_ney'?")),
    "an unknown key of an estimate": Mistake(
        "estimate: kneser_ney", "estimate: {name: kneser_ney, discont: 0.7}", (":9", "'discont'", "'discount'")
    ),
    "counts that continue counts": Mistake(
        "start: {untrained: general}, corpus: domain",
        "start: general, corpus: domain",
        (":10", "start", "counts continue no weights", "untrained"),
    ),
    "a counted start of a gradient stage": Mistake(
        "    tokenizer: {name: words, vocab_size: 512}\n"
        "    backbone: {name: awd_lstm, hidden_size: 16, inner_size: 16}\n",
        "    start: {untrained: general}\n",
        (":14", "start", "cannot continue by gradient", "awd_lstm"),
    ),
    "a counted start of fine-tuning": Mistake(
        "  report:",
        "  classify: {kind: finetune, start: general, corpus: task, head: sequence_classification, "
        "objective: cross_entropy, strategy: full, budget: {epochs: 1}}\n  report:",
        (":20", "start", "is counted", "evaluate stage"),
    ),
    "an estimate on labels": Mistake(
        "  report:",
        "  classify: {kind: finetune, start: {untrained: general}, corpus: task, head: sequence_classification, "
        "estimate: kneser_ney, budget: {epochs: 1}}\n  report:",
        (":20", "estimate", "reads labels"),
    ),
    "features of a table of counts": Mistake(
        "  report:",
        "  tags: {kind: finetune, corpus: task, tokenizer: {name: words, vocab_size: 512}, head: tagging, "
        "features: {from: general}, backbone: bilstm, objective: tag_cross_entropy, strategy: full, "
        "budget: {epochs: 1}}\n  report:",
        (":20", "features", "ngram"),
    ),
    "vectors of a table of counts": Mistake(
        "suite: perplexity", "suite: word_vectors", (":20", "suite", "word_vectors", "no vectors")
    ),
    "masks of a table of counts": Mistake(
        "suite: perplexity", "suite: pseudo_perplexity", (":20", "suite", "pseudo_perplexity", "masked_logits")
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_with_its_line(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    check_refusal(refusal(tmp_path, "counted", mistake.made_in(COUNTED)), mistake.says)


def test_a_counted_stage_is_one_model_of_its_own_code(tmp_path: Path, sources: dict[str, DataSource]) -> None:
    library = library_of(
        tmp_path, counted=COUNTED.replace("estimate: kneser_ney", "estimate: kneser_ney\n    seeds: [0, 1]")
    )
    assert (
        smoke(library.load("counted")).stages["domain"].estimate == library.load("counted").stages["general"].estimate
    )
    steps = {step.label: step for step in plan_of(library, "counted", sources).steps}
    assert "general" in steps, "a seed changes no count"
    assert steps["general"].identity["stage"]["estimate"] == {
        "name": "kneser_ney", "discounts": "modified", "discount": None,
    }  # fmt: skip
    assert "accelerators" not in steps["general"].identity
    assert "estimate" not in steps["neural"].identity["stage"], "a key at its default moves no fingerprint"
    assert steps["domain"].identity["untrained"] and steps["domain"].parents == {"start": steps["general"].fingerprint}


def test_the_loop_of_gradients_is_no_part_of_counting() -> None:
    from pipelines.lineage.source import closure

    counting = closure(COUNTING.partition(":")[0])
    assert not {one for one in counting if one.startswith(("pipelines.training.loop", "pipelines.parts.accelerators."))}
    assert not {one for one in closure("pipelines.training.loop.fit") if "estimat" in one}


def test_an_estimate_at_its_default_is_not_dumped() -> None:
    assert "estimate" not in Stage(kind=Kind.PRETRAIN).model_dump(mode="json")


def test_the_shipped_recipe_counts_the_tokens_of_recipe_gpt() -> None:
    library = library_of(RECIPES)
    counted, neural = library.load("ngram"), library.load("gpt")
    assert counted.stages["fivegram"].tokenizer == neural.stages["general"].tokenizer
    assert counted.stages["fivegram"].corpus == neural.stages["general"].corpus
