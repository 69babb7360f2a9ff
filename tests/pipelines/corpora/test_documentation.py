"""The embedded corpus: what is read, that the label is taken out, and that parts are whole modules."""

from __future__ import annotations

import multiprocessing
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from pipelines.corpora.documentation.docstrings import DOMAIN, SHORTEST, LabelRemover, read_documentation, task_rows
from pipelines.corpora.documentation.installation import python_files, runtime_closure
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.errors import DataError

Rows = list[tuple[str, str, str, str]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return list(task_rows(DocumentationTask(documentation="scipy")))


def test_the_closure_leaves_out_the_tools_of_the_tests_and_cursus_itself() -> None:
    closure = runtime_closure()
    assert {"numpy", "torch", "transformers"} | DOMAIN <= set(closure)
    assert not {"cursus", "pytest", "mypy", "hypothesis"} & set(closure)


def test_strings_are_found_wherever_python_keeps_them(tmp_path: Path) -> None:
    filler = "and a sentence that is long enough to say something about the object it belongs to, and to be kept."
    (tmp_path / "m.py").write_text(
        f'"""Module {filler}"""\n'
        f'class A:\n    """Class {filler}"""\n'
        f'    def f(self):\n        """Method {filler}\n\n        Indented.\n        """\n'
        f'if True:\n    async def g():\n        """Conditional {filler}"""\n        return """not {filler}"""\n'
        f'add_newdoc("pkg", "h", """Compiled {filler}""")\n'
        'def short():\n    """Short."""\n'
    )
    (tmp_path / "broken.py").write_text('"""Template {{ x }}"""\ndef {{ name }}(): pass\n')
    found = list(read_documentation({"m.py": tmp_path / "m.py", "broken.py": tmp_path / "broken.py"}))
    assert [source for _, source in found] == ["m.py:module", "m.py:A", "m.py:A.f", "m.py:g", "m.py:pkg.h"]
    assert found[2][0].endswith("\n\nIndented.")


def test_a_process_that_is_killed_is_an_error_and_not_waited_for() -> None:
    reading = read_documentation(python_files())
    next(reading)
    children = multiprocessing.active_children()
    if not children:
        pytest.skip("files are parsed in this process where there is one core")
    for child in children:
        child.kill()
    with pytest.raises(DataError, match="a process reading documentation strings was killed, .* run again"):
        list(reading)


def test_labels_are_removed_with_their_imports_and_aliases() -> None:
    remove = LabelRemover({"stats", "signal", "linalg", "sparse", "distance"})
    text = (
        "Signal processing with `scipy.signal.butter`, see :mod:`scipy.stats`.\n"
        ">>> import numpy as np\n>>> from scipy.stats import (norm,\n...     beta)\n"
        ">>> from scipy import signal as sg\n"
        ">>> stats.norm.rvs(size=3) + sparse.linalg.norm(x) + sg.butter(3)\n"
        "    from scipy import sparse\n"
        "from the same distribution, import the data\n.. currentmodule:: scipy.stats"
    )
    assert remove(text) == (
        "Signal processing with `butter`, see :mod:``.\n"
        ">>> norm.rvs(size=3) + norm(x) + butter(3)\n"
        "from the same distribution, import the data"
    )


def test_no_text_of_the_task_names_a_module_of_its_label(rows: Rows) -> None:
    labels = {label for _, label, _, _ in rows}
    named = re.compile(rf"\bscipy\.\w|(?<!\w)(?:{'|'.join(labels)})\.[A-Za-z_]|^\s*(?:>>> )?from [\w.]+ import ", re.M)
    assert [(source, named.search(text)) for text, _, source, _ in rows if named.search(text)] == []


def test_ten_classes_in_parts_of_whole_modules(rows: Rows) -> None:
    sizes: dict[str, Counter[str]] = defaultdict(Counter)
    part_of_module: dict[str, set[str]] = defaultdict(set)
    for text, label, source, part in rows:
        assert len(text) >= SHORTEST
        sizes[part][label] += 1
        part_of_module[source.partition(":")[0]].add(part)
    assert all(len(parts) == 1 for parts in part_of_module.values())
    assert {len(sizes[part]) for part in ("train", "validation", "test")} == {10}
    assert min(sizes["train"].values()) > 20
    assert sizes["test"].total() >= 600
    assert sizes["test"].total() > sizes["train"].total() > sizes["validation"].total()


def test_the_same_installation_gives_the_same_rows(rows: Rows) -> None:
    assert list(task_rows(DocumentationTask(documentation="scipy"))) == rows


def test_parsing_on_two_processes_keeps_the_order_of_one() -> None:
    files = python_files({"networkx"})
    assert len(files) >= 200, "too few files to start two processes"
    alone = [document for item in files.items() for document in read_documentation(dict([item]))]
    assert list(read_documentation(files)) == alone
