"""A new project of one's own: settings, recipes, a folder for own parts, and what DVC, Prefect and make read.

What the code ships is copied or derived from the shipped file, so that a project of this version fits this version.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ruamel.yaml import YAML

from pipelines.components.own_parts import PARTS
from pipelines.corpora.documentation.docstrings import read_documentation
from pipelines.corpora.documentation.installation import python_files
from pipelines.errors import CursusError
from pipelines.recipe.catalogue import FAMILIES
from pipelines.shipped import shipped_folder
from tasks.datasets.wait_for_runs import WAITED, WAITED_TEXT

TEMPLATES = ("text", "chinese", "empty")
COPIED = ("prefect.yaml", "automations", ".dvcignore", ".dvc/config", ".dvc/.gitignore")
CODE = ("pipelines/", "tasks/")
"""Dependencies of the checkout's dvc.yaml that a project does not have; the pin covers the code that they hold."""
WRITTEN = {
    "Makefile": "Makefile",
    ".gitignore": "gitignore",
    "README.md": "README.md",
    ".github/workflows/cursus.yaml": "workflow.yaml",
    "recipes/own.yaml": "own.yaml",
}
"""File of a project → file of its template, where the template has it."""
LABELS = ("asyncio", "email", "unittest")
"""Packages of the standard library whose documentation is the labelled example: which one does a text document?"""
DOMAIN = ("logging", "importlib", "http", "json", "concurrent", "multiprocessing", "urllib", "xml")
TRAINED, TESTED = 60, 100
"""Examples of a label up to which the training table and then the test table reach."""


def create(folder: Path, template: str) -> None:
    """Make the project in `folder`, which is new or empty: all of it, or, where it is stopped, nothing.

    Raises CursusError for an unknown template, or a folder that holds something.
    """
    if template not in TEMPLATES:
        raise CursusError(f"there is no template {template!r}; templates: {', '.join(TEMPLATES)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CursusError(f"{folder}: exists and is not empty; name a new folder")
    empty = folder.exists()  # it may be the current folder, which another one cannot replace
    home = folder if empty else folder.parent
    home.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".cursus-init-", dir=home) as temporary:
        work = Path(temporary) / "project"
        _fill(work, template)
        if empty:
            for entry in sorted(work.iterdir()):
                os.replace(entry, folder / entry.name)
        else:
            os.replace(work, folder)


def _fill(folder: Path, template: str) -> None:
    """Write the project into `folder`."""
    shipped = shipped_folder()
    for name in COPIED:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # their content alone: what is installed may be read-only, and a project is edited
        if (shipped / name).is_dir():
            shutil.copytree(shipped / name, target, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(shipped / name, target)
    for name, source in WRITTEN.items():
        if (file := _source(template, source)).is_file():
            _write(folder / name, file.read_text(encoding="utf-8"))
    _write(folder / "dvc.yaml", _data_steps(shipped / "dvc.yaml"))
    _write(folder / "params.yaml", _settings(shipped / "params.yaml", template))
    (folder / "recipes").mkdir(exist_ok=True)
    _write(folder / PARTS / "README.md", _parts_page(template))
    _write(folder / WAITED, WAITED_TEXT)
    if template == "text":
        _write_example_texts(folder)
    if _is_versioned(folder):
        config = folder / ".dvc" / "config"
        kept = [line for line in config.read_text(encoding="utf-8").splitlines(True) if "no_scm" not in line]
        _write(config, "".join(kept))


def _is_versioned(folder: Path) -> bool:
    """Whether the project is in a git repository, which is made unless it is inside of one; False without git."""
    try:
        inside = subprocess.run(["git", "rev-parse"], cwd=folder, capture_output=True).returncode == 0
        return inside or subprocess.run(["git", "init", "--quiet"], cwd=folder, capture_output=True).returncode == 0
    except OSError:
        return False


def _source(template: str, name: str) -> Traversable:
    """The file `name` of a template: its own, or else that of all templates."""
    folder = files(__package__).joinpath("templates")
    own = folder.joinpath(template, name)
    return own if own.is_file() else folder.joinpath(name)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _parts_page(template: str) -> str:
    """The page about own parts, whose last line is repeated for each family."""
    *text, row = _source(template, "parts.md").read_text(encoding="utf-8").splitlines()
    rows = [row.format(family=family, package=package) for family, package in FAMILIES.items()]
    return "\n".join([*text, *rows]) + "\n"


def _settings(shipped: Path, template: str) -> str:
    """The shipped settings of training and promotion, with the datasets of a template and comments in its language."""
    head, _, _ = shipped.read_text(encoding="utf-8").partition("\ndatasets:\n")
    kept = [line for line in head.splitlines() if not line.startswith(("#", "default_dataset:"))]
    file = _source(template, "comments.yaml")
    translated = YAML(typ="safe").load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    lines = [_commented(line, translated) for line in ("# Settings of this project.", *kept)]
    return "\n".join([*lines, _source(template, "datasets.yaml").read_text(encoding="utf-8")])


def _commented(line: str, translated: Mapping[str, str]) -> str:
    """A line of settings with its comment translated."""
    code, mark, comment = line.rpartition("# ")
    return f"{code}{mark}{translated.get(comment, comment)}"


def _data_steps(shipped: Path) -> str:
    """The shipped steps without their dependencies on code, which an installed package has elsewhere."""
    reader = YAML(typ="rt")
    reader.width = 120
    document = reader.load(shipped)
    for stage in document["stages"].values():
        step: Any = stage.get("do", stage)
        if "deps" in step:
            step["deps"] = [path for path in step["deps"] if not str(path).startswith(CODE)]
    text = io.StringIO()
    reader.dump(document, text)
    return text.getvalue()


def _write_example_texts(folder: Path) -> None:
    """Real texts as an example of a user's files: documentation of the standard library of Python."""
    texts = _documents((*DOMAIN, *LABELS))
    _write(folder / "texts" / "domain.txt", "\n\n".join(text for name in DOMAIN for text in texts[name]) + "\n")
    for table, start, end in (("train", 0, TRAINED), ("test", TRAINED, TESTED)):
        records = [{"text": text, "label": label} for label in LABELS for text in texts[label][start:end]]
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        _write(folder / "labelled" / f"{table}.jsonl", "\n".join(lines) + "\n")


def _documents(packages: Sequence[str]) -> dict[str, list[str]]:
    """Package of the standard library → its documentation strings, each once, without empty lines."""
    prefixes = {f"python/{package}/": package for package in packages}
    own = {name: path for name, path in python_files().items() if name.startswith(tuple(prefixes))}
    texts: dict[str, dict[str, None]] = {package: {} for package in packages}
    for text, source in read_documentation(own):
        package = next(package for prefix, package in prefixes.items() if source.startswith(prefix))
        texts[package][text.replace("\n\n", "\n")] = None
    return {package: list(known) for package, known in texts.items()}
