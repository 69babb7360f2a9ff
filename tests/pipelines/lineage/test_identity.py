"""What moves a fingerprint, and what must not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.lineage import fingerprint as identity
from pipelines.lineage import source
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.source import closure, source_hash
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from tests.copied_sources import copy_code
from tests.steps import RECIPES, ROOT, library_of

FINGERPRINTS = """
import json, sys
from pathlib import Path
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
library = Library(Path("recipes"))
tables = ("general", "domain", "task_text", "train", "validation", "test")
data = {name: DataSource(digest=name, path=name) for name in tables}
print(json.dumps({step.label: step.fingerprint for step in plan(library.load("regime"), library, data).steps}))
print(json.dumps(sorted({"torch", "prefect", "mlflow", "transformers"} & set(sys.modules))))
"""
CLASSIFY_AND_AFTER = {"classify@0", "classify@1", "classify@2", "classify@3", "classify@4", "small", "int8", "report"}


def fingerprints(library: Library, data: dict[str, DataSource]) -> dict[str, str]:
    return {step.label: step.fingerprint for step in plan(library.load("regime"), library, data).steps}


def moved(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert before.keys() == after.keys()
    return {label for label in before if before[label] != after[label]}


def regime(folder: Path, change: Callable[[str], str] = lambda text: text) -> Library:
    return library_of(folder, regime=change((RECIPES / "regime.yaml").read_text()))


def changed_stage(text: str, stage: str, old: str, new: str) -> str:
    """`text` with the first `old` after the beginning of `stage` replaced."""
    head, begin, tail = text.partition(f"\n  {stage}:")
    assert old in tail
    return head + begin + tail.replace(old, new, 1)


def test_a_plan_is_the_same_every_time(sources: dict[str, DataSource], tmp_path: Path) -> None:
    before = fingerprints(Library(RECIPES), sources)
    assert before == fingerprints(regime(tmp_path), sources), "where a recipe lies is no part of what it makes"
    assert before == fingerprints(Library(RECIPES), dict(reversed(sources.items())))
    assert all(len(value) == 64 for value in before.values())


def test_the_rate_of_fine_tuning_moves_fine_tuning_and_what_follows(
    sources: dict[str, DataSource], tmp_path: Path
) -> None:
    (tmp_path / "changed").mkdir()
    stage = Library(RECIPES).load("regime").stages["classify"]
    changed = regime(
        tmp_path / "changed", lambda text: text.replace("\n  classify:\n", "\n  classify:\n    dropout: 0.37\n", 1)
    )
    assert changed.load("regime").stages["classify"].dropout != stage.dropout
    different = moved(fingerprints(Library(RECIPES), sources), fingerprints(changed, sources))
    # stages written `like: classify` take the change over as well; no pre-training does
    assert different >= CLASSIFY_AND_AFTER and not different & {"general", "domain", "task"}


def test_a_change_of_one_rate_moves_only_its_descendants(sources: dict[str, DataSource], tmp_path: Path) -> None:
    recipe = Library(RECIPES).load("regime")
    optimizer = recipe.stages["classify"].optimizer.model_copy(update={"lr": 0.00123})
    classify = recipe.stages["classify"].model_copy(update={"optimizer": optimizer})
    changed = recipe.model_copy(update={"stages": {**recipe.stages, "classify": classify}})
    library = Library(RECIPES)
    after = {step.label: step.fingerprint for step in plan(changed, library, sources).steps}
    assert moved(fingerprints(library, sources), after) == CLASSIFY_AND_AFTER


@pytest.mark.parametrize(
    ("table", "first"), [("general", "general"), ("domain", "domain"), ("task_text", "task"), ("train", "classify@0")]
)
def test_changed_text_moves_the_stage_that_reads_it_and_what_follows(
    table: str, first: str, sources: dict[str, DataSource]
) -> None:
    library = Library(RECIPES)
    edited = {**sources, table: DataSource(digest="f" * 32, path=sources[table].path)}
    steps = plan(library.load("regime"), library, sources).steps
    different = moved(fingerprints(library, sources), fingerprints(library, edited))
    assert first in different
    by_fingerprint = {step.fingerprint: step for step in steps}
    for step in steps:
        parents = {by_fingerprint[parent].label for parent in step.parents.values()}
        assert (step.label in different) == (table in step.data or bool(parents & different)), step.label


def test_test_data_moves_only_the_report(sources: dict[str, DataSource]) -> None:
    edited = {**sources, "test": DataSource(digest="f" * 32, path="test")}
    library = Library(RECIPES)
    assert moved(fingerprints(library, sources), fingerprints(library, edited)) == {"report"}


def test_where_tables_lie_moves_nothing(sources: dict[str, DataSource]) -> None:
    elsewhere = {name: DataSource(digest=source.digest, path=f"elsewhere/{name}") for name, source in sources.items()}
    library = Library(RECIPES)
    assert not moved(fingerprints(library, sources), fingerprints(library, elsewhere))


def test_seeds_differ(sources: dict[str, DataSource]) -> None:
    library = Library(RECIPES)
    before = fingerprints(library, sources)
    assert len({before[f"classify@{seed}"] for seed in (0, 1, 2)}) == 3


def test_a_librarys_minor_version_moves_everything(
    sources: dict[str, DataSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(RECIPES)
    before = fingerprints(library, sources)
    real = identity.importlib.metadata.version
    for version, expected in (("2.13.9", set()), ("2.99.0", set(before))):
        identity.library_versions.cache_clear()
        monkeypatch.setattr(
            identity.importlib.metadata, "version", lambda name, v=version: v if name == "torch" else real(name)
        )
        assert moved(before, fingerprints(library, sources)) == expected
    monkeypatch.undo()
    identity.library_versions.cache_clear()
    assert fingerprints(library, sources) == before


def test_runtime_is_no_part_of_a_stage() -> None:
    from pipelines.recipe.job import Runtime
    from pipelines.recipe.schema import Stage

    assert not set(Runtime.model_fields) & set(Stage.model_fields), "how a stage is computed entered what is computed"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code, to be edited."""
    root = tmp_path_factory.mktemp("code")
    for name in ("pipelines", "recipes"):
        copy_code(ROOT / name, root / name)
    return root


def planned(checkout: Path) -> dict[str, str]:
    """Fingerprints that the code in `checkout` gives, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FINGERPRINTS], cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    made, heavy = (json.loads(line) for line in done.stdout.splitlines())
    assert heavy == [], "planning started what only training needs"
    result: dict[str, str] = made
    return result


def test_code_moves_what_uses_it_and_comments_move_nothing(checkout: Path) -> None:
    before = planned(checkout)
    edits = {
        "parts/objectives/cross_entropy.py": ("smoothing: float = Option(0.0,", "smoothing: float = Option(0.05,"),
        "parts/objectives/match_logits.py": ("temperature: float = Option(2.0,", "temperature: float = Option(3.0,"),
        "judging/evaluations/baselines.py": ("class BaselinesEvaluation(", "MOVED = 1\n\n\nclass BaselinesEvaluation("),
    }
    fine_tuned = {
        label for label in before if label.partition("@")[0] in ("classify", "scratch", "from_general", "from_domain")
    }
    expected = {
        "parts/objectives/cross_entropy.py": fine_tuned | {"small", "int8", "report"},
        "parts/objectives/match_logits.py": {"small", "int8", "report"},
        "judging/evaluations/baselines.py": {"report"},
    }
    for name, (old, new) in edits.items():
        path = checkout / "pipelines" / name
        source = path.read_text()
        assert old in source, name
        path.write_text(source.replace(old, new, 1))
        assert moved(before, planned(checkout)) == expected[name], name
        path.write_text(source)
    for path in (checkout / "pipelines").rglob("*.py"):
        text = path.read_text().replace("\n\n\n", "\n\n\n\n# a remark\n\n")
        path.write_text(text.replace('"""', '"""Said otherwise. ', 1) if text.startswith('"""') else text)
    assert moved(before, planned(checkout)) == set()


def test_code_identity_ignores_parts_that_are_not_used() -> None:
    used = closure("pipelines.parts.objectives.masked_lm")
    assert "pipelines.parts.objectives.contrastive" not in used and "pipelines.components" in used
    assert source_hash("pipelines.parts.objectives.masked_lm") != source_hash("pipelines.parts.objectives.contrastive")
    assert not any(module.startswith(("tasks", "flows")) for module in closure("pipelines.training.loop.fit"))
    with pytest.raises(ModuleNotFoundError, match="pipelines.parts.objectives.nothing"):
        source_hash("pipelines.parts.objectives.nothing")


def test_equal_values_have_equal_fingerprints_and_what_is_not_json_is_refused() -> None:
    assert identity.fingerprint({"a": 1, "b": 0.1}) == identity.fingerprint({"b": 0.1, "a": 1})
    assert identity.fingerprint({"a": 1}) != identity.fingerprint({"a": 1.5})
    with pytest.raises(ValueError, match="Out of range float"):
        identity.fingerprint({"a": float("nan")})
    with pytest.raises(TypeError):
        identity.fingerprint({"a": {1, 2}})


def test_a_folder_is_named_by_its_contents_alone(tmp_path: Path) -> None:
    for root, order in (("one", ("a", "b/c")), ("two", ("b/c", "a"))):
        for name in order:
            (tmp_path / root / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / root / name).write_text(f"content of {name}")
    first = identity.digest_folder(tmp_path / "one")
    assert first == identity.digest_folder(tmp_path / "two")
    (tmp_path / "two" / "a").write_text("edited")
    assert first != identity.digest_folder(tmp_path / "two")


def test_what_is_imported_for_annotations_alone_is_no_part_of_an_identity() -> None:
    # the case is a real one: the module is named there, among whatever else is
    source = (ROOT / "pipelines/judging/evaluations/__init__.py").read_text()
    block = r"^if TYPE_CHECKING:\n(    .*\n)*    from pipelines\.judging\.evaluations\.context import "
    assert re.search(block, source, re.MULTILINE)
    assert "pipelines.judging.evaluations.context" not in closure("pipelines.judging.evaluations")


def test_a_parsed_module_is_kept_beside_its_bytecode_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    file = tmp_path / "module.py"
    file.write_text("import json\nfrom . import other\nSIZE = 3  # a remark\n", encoding="utf-8")
    first = source._parsed("pipelines.module", file)
    assert first == (first[0], ["json", "pipelines", "pipelines.other"]) and "remark" not in first[0]
    (kept,) = (tmp_path / "__pycache__").iterdir()

    def parse(*_: object) -> None:
        raise AssertionError("parsed although it is known")

    with monkeypatch.context() as patch:
        patch.setattr("ast.parse", parse)
        assert source._parsed("pipelines.module", file) == first
        with pytest.raises(AssertionError):
            source._parsed("tasks.module", file)
    file.write_text(file.read_text().replace("3", "4"), encoding="utf-8")
    assert source._parsed("pipelines.module", file)[0] != first[0]
    kept.write_text("[]", encoding="utf-8")
    assert source._parsed("pipelines.module", file)[1] == first[1]
    kept.unlink()
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    source._parsed("pipelines.module", file)
    assert not kept.exists()
