"""Forms of Prefect's UI: a list to choose from for every name, no field of two types, and refusals that help."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools import ValidationError, validate
from ruamel.yaml import YAML

from tasks.datasets.choices import Choices, choices
from tasks.servers.forms import form
from tasks.servers.requests import mistake
from tasks.servers.suggestions import suggested
from tests.pipelines.corpora.small_dataset import write_small_dataset
from tests.steps import RECIPES, ROOT

ENTRYPOINTS = sorted({one["entrypoint"] for one in YAML(typ="safe").load(ROOT / "prefect.yaml")["deployments"]})
BROKEN = "stages: {general: {kind: [}"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that forms are made of: the recipes, one of the user's own, one that no YAML reader accepts."""
    root = tmp_path_factory.mktemp("files")
    (root / "recipes").mkdir()
    for path in RECIPES.iterdir():
        (root / "recipes" / path.name).symlink_to(path)
    (root / "recipes" / "mine.yaml").write_text("like: regime\nstages: {extra: {like: general}}\n")
    (root / "recipes" / "broken.yaml").write_text(BROKEN)
    write_small_dataset(root)
    return root


@pytest.fixture(scope="module")
def offered(root: Path) -> Choices:
    return choices(root)


def form_of(entrypoint: str, offered: Choices) -> dict[str, Any]:
    module, _, name = entrypoint.rpartition(".")
    return form(parameter_schema(getattr(importlib.import_module(module), name).fn).model_dump(), offered)


def fields_of(schema: dict[str, Any]) -> dict[str, Any]:
    (definition,) = schema["definitions"].values()
    return dict(definition["properties"])


@pytest.mark.parametrize("entrypoint", ENTRYPOINTS)
def test_no_field_is_none_and_an_empty_form_is_accepted_unless_something_is_required(
    entrypoint: str, offered: Choices
) -> None:
    schema = form_of(entrypoint, offered)
    for field in fields_of(schema).values():
        assert "type" in field and field["type"] != "null" and "anyOf" not in field, "the UI would show None"
        assert field.get("default", "") is not None
    config = schema["properties"]["config"]
    assert None not in config.get("default", {}).values()
    required = {"flows.stage.stage": {"stage": "general"}, "flows.claim.claim": {"claim": "crf/entities"}}
    validate({"config": required.get(entrypoint, {})}, schema, raise_on_error=True)
    assert ("default" in config) == (entrypoint not in required)


def test_every_name_is_chosen_from_a_list(offered: Choices) -> None:
    stage, claim = (fields_of(form_of(f"flows.{name}.{name}", offered)) for name in ("stage", "claim"))
    assert stage["dataset"]["enum"] == ["small"] and stage["dataset"]["default"] == "small"
    assert {"regime", "mine", "broken"} <= set(stage["recipe"]["enum"])
    assert {"hour", "minilm"} <= set(stage["variants"]["items"]["enum"])
    assert {"general", "classify", "extra"} <= set(stage["stage"]["enum"])
    assert "crf/entities" in claim["claim"]["enum"] and "mine/extra" not in claim["claim"]["enum"]
    assert {"small", "trained=small", "judged=small"} <= set(claim["data"]["items"]["enum"])


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "dataset": ("regime", {"dataset": "smal"}, "Did you mean 'small'? Known: small."),
    "recipe": ("regime", {"recipe": "regmie"}, "Did you mean 'regime'? Known: adapter, "),
    "variant": ("regime", {"variants": ["huor"]}, "Did you mean 'hour'? Known: hour, minilm."),
    "a variant of another recipe": ("regime", {"recipe": "bert", "variants": ["minilm"]}, "'minilm'"),
    "a variant of the dataset's recipe": ("lattice", {"dataset": "small", "variants": ["minlm"]}, "mean 'minilm'?"),
    "stage": ("stage", {"stage": "genral"}, "Did you mean 'general'? Known: classify, "),
    "a stage of another recipe": ("stage", {"recipe": "regime", "stage": "extra"}, "'extra'"),
    "claim": ("claim", {"claim": "crf/entitys"}, "entities'? Known: "),
    "data of a claim": ("claim", {"claim": "crf/entities", "data": ["smal"]}, "Did you mean 'small'? Known: "),
    "data": ("data", {"dataset": "smal"}, "Did you mean 'small'? Known: small."),
}
"""Flow, its configuration, and what the refusal says."""


@pytest.mark.parametrize(("flow", "config", "meant"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_refused_by_the_schema_and_before_a_start(
    flow: str, config: dict[str, Any], meant: str, root: Path, offered: Choices
) -> None:
    """Prefect's server checks the schema when a run is created, the worker the files when it is started."""
    entrypoint = f"flows.{flow}.{flow}"
    schema = form_of(entrypoint, offered)
    with pytest.raises(ValidationError) as refused:
        validate({"config": config}, schema, raise_on_error=True)
    for said in (suggested(str(refused.value)), mistake(root, entrypoint, {"config": config}, schema)):
        assert said is not None and meant in said and "Known: " in said and "\n" not in said


def test_a_run_without_a_mistake_is_accepted(root: Path, offered: Choices) -> None:
    for flow, config in [
        ("regime", {"recipe": "regime", "variants": ["hour"], "threads": 2}),
        ("stage", {"recipe": "mine", "stage": "extra"}),
        ("lattice", {"dataset": "small", "sizes": [8]}),
        ("data", {}),
    ]:
        entrypoint = f"flows.{flow}.{flow}"
        assert mistake(root, entrypoint, {"config": config}, form_of(entrypoint, offered)) is None, config


def test_what_the_schema_alone_refuses_is_refused_at_the_start_too(root: Path, offered: Choices) -> None:
    entrypoint = "flows.regime.regime"
    for config, said in [({"thread": 2}, "thread"), ({"threads": 0}, "minimum")]:
        refused = mistake(root, entrypoint, {"config": config}, form_of(entrypoint, offered))
        assert refused is not None and said in refused


def test_limits_without_a_unit_are_refused_at_the_start(root: Path, offered: Choices) -> None:
    entrypoint = "flows.compress.compress"
    form = form_of(entrypoint, offered)
    assert mistake(root, entrypoint, {"config": {"within": "10 MB, -2 points"}}, form) is None
    refused = mistake(root, entrypoint, {"config": {"within": "10"}}, form)
    assert refused is not None and "10 has no unit" in refused


def test_only_a_sentence_about_a_choice_is_completed() -> None:
    assert suggested("nothing to do with it") == "nothing to do with it"
    assert suggested("'a' is not one of [b, c]") == "'a' is not one of [b, c]"
    said = suggested("Error: 'smal' is not one of ['small', 'large'].")
    assert said.startswith("Error: 'smal' is not one of the choices. Did you mean 'small'? Known: large, small.")
