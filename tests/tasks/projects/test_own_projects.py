"""A project of one's own: what `cursus init` makes, own parts and recipes, and what `cursus check` finds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import CursusError, RecipeError
from pipelines.recipe.catalogue import FAMILIES
from pipelines.recipe.contract import violations
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.load import Library
from tasks.environment import is_own_project, project_root
from tasks.projects import creation
from tasks.projects.creation import TEMPLATES, create
from tests.contracts.families import EVERY, members, required
from tests.steps import RECIPES, ROOT

HALVING = '''\
"""A rate that halves at every tenth of the budget."""

from __future__ import annotations

from pipelines.parts.schedules import Schedule


class Halving(Schedule, name="halving"):
    """Half the rate after each tenth of the steps."""

    paper = "arXiv:1608.03983"

    times: int = 10
    """How often."""

    def factor(self, step: int, total: int) -> float:
        return float(0.5 ** (self.times * step // max(1, total)))
'''
HALVED = """\
name: halved
like: regime
stages:
  general: {schedule: {name: halving, times: 4}}
"""
PLANNED = """
import json, sys
from pathlib import Path
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.source import closure
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
library = Library(RecipeFolders.of_project(Path(sys.argv[1])))
names = ("general", "domain", "task_text", "train", "validation", "test", "general_heldout")
data = {name: DataSource(digest=name, path=name) for name in names}
steps = {step.label: step.fingerprint for step in plan(library.load("halved"), library, data).steps}
schedule = type(library.load("halved").stages["general"].schedule)
print(json.dumps([steps, schedule.__module__, sorted(closure(schedule.__module__))]))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    create(tmp_path / "mine", "empty")
    return tmp_path / "mine"


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: parts that it discovers are none of this one."""
    environment = {name: value for name, value in os.environ.items() if name != "CURSUS_ROOT"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=root, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True,
    )  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_has_what_every_tool_reads(
    template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "mine"
    create(root, template)
    assert is_own_project(root) and (root / "Makefile").is_file() and (root / ".dvc" / "config").is_file()
    monkeypatch.delenv("CURSUS_ROOT", raising=False)
    (root / "inside").mkdir()
    monkeypatch.chdir(root / "inside")
    assert project_root() == root
    deployed, automations = (root / "prefect.yaml").is_file(), {path.name for path in (root / "automations").iterdir()}
    assert deployed and automations == {path.name for path in (ROOT / "automations").iterdir()}, (
        "what `cursus up` reads"
    )
    ignored = subprocess.run(["git", "check-ignore", "dvc.lock", "data/pins/own.json"], cwd=root, capture_output=True)
    assert ignored.returncode == 1 and (root / "data" / "pins" / "waited").is_file(), "git says which data was used"
    jobs = YAML(typ="safe").load(root / ".github" / "workflows" / "cursus.yaml")["jobs"]
    cached = [step for job in jobs.values() for step in job["steps"] if "cache" in step.get("with", {})]
    assert not cached or (root / "requirements.txt").exists(), "setup-python fails where there is nothing to key it by"
    parts = (root / "parts" / "README.md").read_text(encoding="utf-8")
    assert all(f"`parts/{family}/`" in parts for family in FAMILIES)
    if template == "empty":
        with pytest.raises(RecipeError, match="'datasets:' is missing or empty"):
            load_settings(root)
        return
    settings = load_settings(root)
    assert list(settings) == ["own"]
    recipe = Library(RecipeFolders.of_project(root)).load("own")
    assert recipe.description and recipe.stages["classify"].trains
    if template == "text":
        lines = (root / "labelled" / "train.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) > 100 and {"text", "label"} == set(json.loads(lines[0]))


def test_the_steps_of_the_data_are_those_of_the_checkout_without_its_code(project: Path) -> None:
    own, shipped = (YAML(typ="safe").load(folder / "dvc.yaml")["stages"] for folder in (project, ROOT))
    assert list(own) == list(shipped)
    for name, stage in shipped.items():
        expected, found = stage.get("do", stage), own[name].get("do", own[name])
        dropped = set(expected.pop("deps", ())) - set(found.pop("deps", ()))
        assert found == expected and all(
            (ROOT / path).exists() and path.startswith(("pipelines/", "tasks/")) for path in dropped
        )


def test_a_folder_that_holds_something_is_left_alone(project: Path) -> None:
    with pytest.raises(CursusError, match="exists and is not empty"):
        create(project, "text")
    with pytest.raises(CursusError, match="no template 'txt'; templates: text, chinese, empty"):
        create(project.parent / "other", "txt")
    assert not (project.parent / "other").exists()


@pytest.mark.parametrize("exists", [False, True], ids=["new", "empty"])
def test_a_project_is_made_completely_or_not_at_all(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, root = tmp_path / "home", tmp_path / "home" / "my project"
    (root if exists else home).mkdir(parents=True)

    def stopped(*arguments: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(creation, "_settings", stopped)
        create(root, "empty")
    assert [*home.iterdir()] == ([root] if exists else []) and (not exists or not [*root.iterdir()])
    done = CliRunner().invoke(app, ["init", str(root), "--template", "empty"])
    assert done.exit_code == 0 and f"cd '{root}'" in done.stdout, "a path with a space can be copied into a shell"
    assert is_own_project(root) and (root / "recipes").is_dir() and [*home.iterdir()] == [root]
    assert not [path for path in root.iterdir() if path.name.startswith(".cursus-init-")]


def test_an_own_part_is_named_by_an_own_recipe_and_is_part_of_its_identity(project: Path) -> None:
    (project / "parts" / "schedules").mkdir()
    part = project / "parts" / "schedules" / "halving.py"
    part.write_text(HALVING, encoding="utf-8")
    (project / "recipes" / "halved.yaml").write_text(HALVED, encoding="utf-8")

    def planned() -> tuple[dict[str, str], str, list[str]]:
        done = command(project, "-c", "import os; os.environ['CURSUS_ROOT'] = os.getcwd()\n" + PLANNED, str(project))
        assert done.returncode == 0, done.stderr
        steps, module, imported = json.loads(done.stdout)
        return steps, module, imported

    before, module, imported = planned()
    assert module == "pipelines.parts.schedules.halving" and {module, "pipelines.parts.schedules"} <= set(imported)
    part.write_text(HALVING.replace("0.5 **", "0.25 **"), encoding="utf-8")
    after, *_ = planned()
    assert before.keys() == after.keys() and before["general"] != after["general"], "the part's code is its identity"

    done = command(project, "-m", "cursus", "check")
    assert (
        "ok       parts/schedules/halving.py: halving" in done.stdout and "ok       recipes/halved.yaml" in done.stdout
    )
    assert done.returncode == 1 and "datasets:" in done.stdout, "an empty project has no dataset yet"


def test_check_names_what_breaks_a_contract(project: Path) -> None:
    folder = project / "parts" / "schedules"
    folder.mkdir()
    (folder / "halving.py").write_text(
        HALVING.replace('name="halving"', 'name="half"').replace('    """How often."""\n', "")
    )
    (project / "parts" / "schedule").mkdir()
    (project / "parts" / "schedule" / "other.py").write_text(HALVING)
    (project / "recipes" / "halved.yaml").write_text(HALVED)
    done = command(project, "-m", "cursus", "check")
    assert done.returncode == 1
    for sentence in (
        "is called 'half' in the file halving.py; give both one name",
        "its option 'times' has no docstring under it",
        "parts/schedule\n           is no family of components; families: cleaning, ",
        "recipes/halved.yaml:4: stages.general.schedule",
    ):
        assert sentence in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        (
            "halving.py",
            HALVING + "\nimport no_such_module\n",
            "halving.py:19: this part cannot be imported: ModuleNotFoundE",
        ),
        ("halving.py", HALVING + "\ndef f(:\n", "halving.py:19: this part cannot be imported: SyntaxError"),
        ("cosine.py", HALVING, "cosine.py: pipelines.parts.schedules has a module of this name; rename the file"),
        (
            "again.py",
            HALVING.replace('"halving"', '"cosine"'),
            "'cosine' already names pipelines.parts.schedules.cosine",
        ),
    ],
    ids=["import", "syntax", "module", "component"],
)
def test_a_part_that_cannot_be_imported_is_one_sentence(name: str, source: str, sentence: str, project: Path) -> None:
    (project / "parts" / "schedules").mkdir()
    (project / "parts" / "schedules" / name).write_text(source, encoding="utf-8")
    (project / "recipes" / "halved.yaml").write_text(HALVED.replace("{name: halving, times: 4}", "linear"))
    done = command(project, "-m", "cursus", "recipes", "halved")
    assert done.returncode == 2 and sentence in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_an_own_recipe_is_taken_before_a_shipped_one(project: Path) -> None:
    shutil.copy(RECIPES / "scl.yaml", project / "recipes" / "crf.yaml")
    file = project / "recipes" / "crf.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("name: scl", "name: crf"), encoding="utf-8")
    library = Library(RecipeFolders.of_project(project))
    assert set(library.names()) == set(Library(RECIPES).names())
    assert library.load("crf").paper == Library(RECIPES).load("scl").paper


@pytest.mark.parametrize(("package", "name"), EVERY)
def test_every_shipped_component_keeps_the_contract_of_own_ones(package: str, name: str) -> None:
    assert not list(violations(members(package)[name], required(package, name)))
