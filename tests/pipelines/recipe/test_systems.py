"""The map of systems: every recipe states what it implements, in ids that exist, and nothing is computed from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.load import Library
from pipelines.recipe.systems import SYSTEMS, find_system, implementations, known_systems, read_systems
from tests.pipelines.recipe.test_bad_recipes import GOOD
from tests.steps import RECIPES, SHIPPED, library_of, plan_of, shipped, without_claims

LIST = """\
A. Vectors:
  - {id: glove, title: GloVe, year: 2014, paper: "doi:10.3115/v1/D14-1162", shows: on par}
B. Transformers:
  - id: bert
    title: BERT
    shows: more
  - {id: electra, title: ELECTRA, shows: sooner}
"""
IDENTIFIER = re.compile(r"(arXiv:(\d{4}\.\d{4,5}|[a-z-]+/\d{7})|doi:10\.\d{4,}/\S+)")


def library(folder: Path, **changes: str) -> Library:
    """A list of systems and the recipe `good`, whose texts are replaced as `changes` says: key → new line."""
    (folder / SYSTEMS).write_text(LIST, encoding="utf-8")
    text = GOOD
    for key, value in changes.items():
        text = text.replace("stages:\n", f"{key}: {value}\nstages:\n", 1)
    return library_of(folder, good=text)


def test_the_list_is_whole_and_every_id_is_there_once() -> None:
    sections = read_systems(RECIPES)
    assert [section[:2] for section in sections] == [f"{letter}." for letter in "ABCDEFGHIJKLN"]
    systems = [system for listed in sections.values() for system in listed]
    assert len(systems) == len(known_systems(RECIPES)) == 130
    for system in systems:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", system.id) and system.title and system.shows.endswith(".")
        for paper in system.paper.split(", "):
            assert ":" not in paper or IDENTIFIER.fullmatch(paper), f"{system.id}: {paper}"


@pytest.mark.parametrize("name", SHIPPED.names())
def test_a_shipped_recipe_states_its_systems(name: str) -> None:
    written = YAML(typ="safe").load(RECIPES / f"{name}.yaml")
    assert "systems" in written, f"{name}: name the systems that it implements, or write `systems: []`"
    recipe = shipped(name)
    assert recipe.systems == tuple(written["systems"]) and set(recipe.systems) <= set(known_systems(RECIPES))
    if len(recipe.systems) > 1:
        assert set(recipe.system_stages) == set(recipe.systems), f"{name}: which stages are which system?"


def test_the_list_is_no_recipe(tmp_path: Path) -> None:
    found = library(tmp_path)
    assert found.names() == ["good"] and "systems" not in SHIPPED.names()
    with pytest.raises(RecipeError, match="there is no recipe 'systems'"):
        found.load("systems")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"systems": "[bert, elektra]"}, r"good.yaml:3: systems.1: there is no system 'elektra'.* Did you mean 'elec"),
        ({"systems": "[bert, bert]"}, r"good.yaml:3: systems.1: 'bert' is given twice"),
        (
            {"systems": "[bert]", "system_stages": "{electra: classify}"},
            r"good.yaml:4: system_stages.electra: .*not am",
        ),
        ({"systems": "[bert]", "system_stages": "{bert: clasify}"}, r"good.yaml:4: .* no stage 'clasify'; stages: gen"),
        ({"systms": "[bert]"}, r"good.yaml:3: systms: .* Did you mean 'systems'"),
    ],
)
def test_a_mistake_names_file_line_and_cure(changes: dict[str, str], expected: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=expected):
        library(tmp_path, **changes).load("good")


def test_without_a_list_any_id_is_accepted(tmp_path: Path) -> None:
    text = GOOD.replace("stages:\n", "systems: ours\nstages:\n", 1)
    assert library_of(tmp_path, good=text).load("good").systems == ("ours",)
    assert read_systems(tmp_path) == {}


def test_a_changed_recipe_does_not_inherit_its_systems(tmp_path: Path) -> None:
    found = library(tmp_path, systems="[bert]", system_stages="{bert: classify}")
    library_of(tmp_path, other="like: good\nstages: {classify: {budget: {epochs: 2}}}\n")
    assert found.load("good").systems == ("bert",)
    assert (found.load("other").systems, found.load("other").system_stages) == ((), {})


def test_no_fingerprint_depends_on_the_systems(tmp_path: Path, sources: dict[str, DataSource]) -> None:
    (tmp_path / "with").mkdir(), (tmp_path / "without").mkdir()
    named = library(tmp_path / "with", systems="[bert]", system_stages="{bert: [general, classify]}")
    plans = [plan_of(one, "good", sources) for one in (named, library(tmp_path / "without"))]
    fingerprints = [[step.fingerprint for step in one.steps] for one in plans]
    assert fingerprints[0] == fingerprints[1]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("id: electra", "id: glove", r"systems.yaml:7: the id 'glove' is given twice"),
        ("    title: BERT\n", "    titel: BERT\n", r"systems.yaml:4: .*'titel'.* Did you mean 'title'"),
        ("year: 2014", "year: soon", r"systems.yaml:2: .*year: .*integer"),
        ("    shows: more\n", "", r"systems.yaml:4: .*shows: Field required"),
        ("A. Vectors:\n", "A. Vectors: none\nC:\n", r"systems.yaml:1: expected a list of systems"),
        ("{id: glove,", "{id: glove", r"systems.yaml:\d+: not valid YAML"),
        (LIST, "", r"systems.yaml:1: expected a mapping"),
    ],
)
def test_a_mistake_in_the_list_names_its_line(old: str, new: str, expected: str, tmp_path: Path) -> None:
    assert old in LIST
    (tmp_path / SYSTEMS).write_text(LIST.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RecipeError, match=expected):
        read_systems(tmp_path)


def test_an_unknown_system_suggests_the_nearest() -> None:
    assert find_system(RECIPES, "electra").paper == "arXiv:2003.10555"
    with pytest.raises(RecipeError, match="there is no system 'bert_wwm' in systems.yaml. Did you mean 'bert-wwm'"):
        find_system(RECIPES, "bert_wwm")


def test_claims_belong_to_the_system_that_they_are_about() -> None:
    found = implementations(map(shipped, ("electra", "recadam", "word2vec")))
    (electra,) = found["electra"]
    assert (electra.stages, electra.claims) == (("classify",), ("electra_against_bert",))
    assert [one.claims for one in (*found["recadam"], *found["proximity"])] == [("few_labels",), ("near_the_start",)]
    assert [one.stages for one in (*found["recadam"], *found["proximity"])] == [("recadam",), ("l2",)]
    # the claim is about a classifier over skip-gram's vectors, two stages on
    assert "skip_gram_against_cbow" in found["word2vec-skipgram"][0].claims
    assert found["word2vec-cbow"][0].claims == ("faster_than_skip_gram",), "none that only compares with it"


def test_a_system_that_no_claim_is_about_has_those_that_compare_with_it() -> None:
    found = implementations(map(shipped, ("hlbl", "mlm_lstm")))
    assert found["wordnet-tree"][0].claims == ("learned_against_is_a",)
    assert found["mlm-lstm"][0].claims == ("below",)
    assert found["hlbl"][0].claims == ("learned_tree", "learned_against_is_a", "near_the_softmax")


def test_without_a_claim_the_system_is_what_the_last_evaluation_lists_last(tmp_path: Path) -> None:
    found = implementations([library_of(tmp_path, t5=without_claims("t5")).load("t5")])
    assert [(one.stages, one.claims) for one in found["t5"]] == [(("classify",), ())]
