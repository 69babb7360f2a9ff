"""A claim whose sides were pre-trained differently repeats what pre-trained them: three draws or more."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.recipe.claim import Claim
from pipelines.recipe.claims import compared_stages
from pipelines.recipe.figures import recorded_figures
from pipelines.recipe.schema import Recipe, Stage
from tasks.records.claims import RECORDS
from tasks.records.measurements import read_records
from tests.steps import ROOT, SHIPPED, shipped

FEWEST = 3
TIME = "ms"
"""Unit of figures that no pre-training changes."""
MEASURED_WITH_FEWER = """
attention_ablations/sines bert2bert/copies bert_wwm/words_against_characters biobert/domain electra/electra_against_bert
extractors/above_convolutional few_shot_tagging/unseen_types freeze_by_distance/farther layoutlm/boxes
lm_lstm/pre_trained macbert/above_whole_words mbert/transfers modernbert/against_bert polysemy/contextual
quick_thoughts/quality regime/adaptation roberta_changes/static sa_lstm/pre_trained skip_thoughts/bag_of_words
tod_bert/few_intents ulmfit/pre_trained use/above_averages word2vec/adapted zen/entities
"""
"""Claims that were measured before this rule, of one pre-training: the interval of each lacks that between
pre-trainings. One that is measured anew states three draws, and leaves this list."""


def below(stage: Stage) -> Iterator[str]:
    """The stages whose weights or states a stage goes on with; a teacher is not one of them."""
    if isinstance(stage.start, str):
        yield stage.start
    if stage.head_start is not None:
        yield stage.head_start
    yield from (one.from_ for one in stage.features)


def pretraining_of(recipe: Recipe, reference: str) -> frozenset[str]:
    """The stages that pre-trained a compared one: drawn, and on other text or labels than its own."""
    top, result = recipe.compared(reference), set[str]()
    pending = [(reference.rpartition("/")[0] or recipe.name, one) for one in below(top)]
    while pending:
        owner, name = pending.pop()
        named, _, name = name.rpartition("/")
        owner = named or owner
        stage = shipped(owner).stages[name]
        if stage.draws and (stage.kind.reads_plain_text or set(stage.corpus) != set(top.corpus)):
            result.add(f"{owner}/{name}")
        pending += [(owner, one) for one in below(stage)]
    return frozenset(result)


def needs_draws(recipe: Recipe, claim: Claim) -> bool:
    """Whether the sides differ in what pre-trained them, and the claim is about a figure that this changes."""
    figures = recorded_figures(None)[claim.figure].values() if claim.figure is not None else ()
    if claim.form.of_spread or any(one.exact or one.unit == TIME for one in figures):
        return False
    return len({pretraining_of(recipe, stage) for stage in compared_stages(claim)}) > 1


def test_a_claim_about_pre_training_states_three_draws_of_it() -> None:
    measured = {f"{record['recipe']}/{record['claim']}" for record in read_records(ROOT / RECORDS)}
    recipes = [shipped(name) for name in sorted(SHIPPED.names())]
    fewer = {
        f"{recipe.name}/{label}"
        for recipe in recipes
        for label, claim in recipe.claims.items()
        if claim.draws < FEWEST and needs_draws(recipe, claim)
    }
    assert not fewer - measured, "add draws: 3 to these claims before they are measured"
    assert fewer == set(MEASURED_WITH_FEWER.split()), "a claim that states three draws leaves the list"


def test_the_rule_sees_starts_features_and_other_recipes() -> None:
    gpt, elmo, infersent = shipped("gpt"), shipped("elmo"), shipped("infersent")
    assert pretraining_of(gpt, "classify") == {"gpt/general", "gpt/domain", "gpt/task"}
    assert pretraining_of(gpt, "scratch") == frozenset()
    assert pretraining_of(elmo, "static") == {"word2vec/general"}
    assert pretraining_of(infersent, "classify") == {"infersent/pairs"}, "labels of another task pre-train, too"
    assert not needs_draws(elmo, elmo.claims["context"]), "both sides read the same language model"
    assert needs_draws(gpt, gpt.claims["against_an_lstm"])
