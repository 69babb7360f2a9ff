"""params.yaml with mistakes in it: read and prepared, or refused with the line and the key."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from pipelines.corpora.settings.dataset import load_dataset, load_settings
from pipelines.corpora.settings.runtime import load_runtime
from pipelines.corpora.settings.sources import DocumentationSource
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.pin import pin
from pipelines.corpora.steps.pinned_sources import text_sources
from tasks.datasets.planning import load_recipe, resolve_request
from tasks.launchers.settings import load_training
from tasks.promotion.settings import PromotionSettings
from tests.fuzz.effort import effort, refusal_of, with_findings
from tests.fuzz.structure import misspelt, mistaken
from tests.fuzz.test_recipes import written
from tests.pipelines.corpora.small_dataset import PARAMS, write_small_dataset
from tests.steps import ROOT

SHIPPED = (ROOT / "params.yaml").read_text(encoding="utf-8")
BLOCKS = re.sub("default_dataset: .*", "default_dataset: small", SHIPPED.partition("\ndatasets:")[0]) + "\n" + PARAMS
"""All blocks but the datasets that ship, which take long to collect."""
VALUES = [YAML(typ="safe").load(text) for text in (SHIPPED, BLOCKS)]
FINDINGS = [
    BLOCKS.replace("  small:", f"  {name}:")
    for name in ("5", "5.5", "null", "yes", "2001-01-01", "[a]", "{a: b}", "'../x'", "Small", "'5'", "''", "x" * 300)
] + [
    BLOCKS.replace("    general: texts/general\n", f"    {line}\n")
    for line in (
        "like: [small]", "like: {a: 1}", "like: small", "general: 5", "general: []", "general: ''", 'general: "a\\0b"',
        'general: "\\ud83d"', "general: /dev/zero", "general: texts/**/*", "general: '[a'", "general: s3://",
        "general: ~", "general: {path: texts/general, share: [0, .nan]}",
        "general: {path: texts/general, longest_document: .inf}",
        "general: {path: texts/general, encoding: idna}", "general: {path: texts/general, columns: 5}",
        "general: texts/general\n    quality: {fertility: .inf}", "general: texts/general\n    budget: {general: 5}",
        "general: texts/general\n    variants: hour", "general: texts/general\n    recipe: ../../x",
        "general: texts/general\n    budget: {5: {tokens: 1}}", "general: texts/general\n    budget: [general]",
        "general: {package: a/b}", "general: {documentation: general, form: pages}",
    )
] + ["", "5", "[]", "datasets:", "datasets: 5", "datasets: {a: 5}", "default_dataset: [a]\n" + PARAMS,
     "training: 5\n" + PARAMS, "runtime: [a]\n" + PARAMS, "promotion: {criteria: 5}\n" + PARAMS,
     "runtime: {memory: .inf}\n" + PARAMS, "training: {devices: 1000000000}\n" + PARAMS]  # fmt: skip
"""What was found once."""


@st.composite
def settings_files(draw: st.DrawFn) -> str:
    """The text of a params.yaml with mistakes."""
    number = draw(st.integers(0, 1))
    if draw(st.integers(0, 3)) == 0:
        return draw(misspelt((SHIPPED, BLOCKS)[number]))
    return written(draw(mistaken(VALUES[number])))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "recipes", root / "recipes")
    write_small_dataset(root)
    (root / "params.yaml").write_text(BLOCKS, encoding="utf-8")
    load_recipe(root, resolve_request(root, None, None, (), smoke=False))  # imports, which belong to no mistake
    yield root


@with_findings(FINDINGS)
@given(settings_files())
@effort(25)
def test_settings_are_used_or_refused(root: Path, text: str) -> None:
    with suppress(UnicodeEncodeError):
        (root / "params.yaml").write_text(text, encoding="utf-8")

    def read() -> None:
        load_training(root)
        load_runtime(root)
        PromotionSettings.load(root)
        resolve_request(root, None, None, (), smoke=False)

    message = refusal_of(read)
    if message is not None:
        assert "params.yaml" in message, message
        return
    for name in load_settings(root):
        message = refusal_of(lambda name=name: load_recipe(root, resolve_request(root, name, None, (), smoke=False)))
        assert message is None or ".yaml" in message or "recipe" in message, message
    if "small" in load_settings(root):
        settings = load_dataset("small", root)
        documented = any(isinstance(one, DocumentationSource) for one in text_sources(settings))
        if not documented and not any(isinstance(one, DocumentationTask) for one in settings.labelled.values()):
            _prepare(root)


def _prepare(root: Path) -> None:
    for step in (pin, collect):
        if refusal_of(lambda step=step: step("small", root)) is not None:
            return
