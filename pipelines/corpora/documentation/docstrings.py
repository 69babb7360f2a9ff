"""A corpus that every installation has: documentation strings of installed Python modules, parsed but never imported.

`general` is everything outside the scientific stack, `domain` the scientific stack without SciPy, and SciPy itself is
the task: which subpackage does this text document? Names of SciPy modules (dotted names, imports, prompts that import)
are removed from the task's texts, so that they do not reveal the label.
"""

from __future__ import annotations

import ast
import gc
import inspect
import os
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pipelines.corpora.documentation.installation import python_files, runtime_closure
from pipelines.corpora.engines.process_pool import process_pool
from pipelines.corpora.settings.task import DocumentationTask, version
from pipelines.errors import DataError

DOMAIN = {"numpy", "scikit-learn", "pandas", "sympy", "networkx", "matplotlib", "mpmath"}
TASK = "scipy"
SHORTEST = 80
"""Minimum characters; shorter texts contain little beyond the name of their object."""

Document = tuple[str, str]
"""Text and source."""

_DOCSTRING_SETTERS = {"add_newdoc", "add_docstr"}
_CHANGE = re.compile(r"\.\. version(?:added|changed)::? *(\d+\.\d+)")
"""Sphinx's notes of the version in which something was added or changed."""
_PRIVATE_CODE = {"_lib", "_external", "_build_utils"}


def documentation(corpus: str) -> Iterator[Document]:
    """Documents of `general` or `domain`, in file order."""
    if corpus == "domain":
        return read_documentation(python_files(DOMAIN))
    return read_documentation(python_files_outside_science())


def python_files_outside_science() -> dict[str, Path]:
    """Python files of the standard library and of dependencies outside the scientific stack, each file once."""
    science = python_files(DOMAIN | {TASK})
    return {name: path for name, path in python_files().items() if name not in science}


def read_documentation(files: dict[str, Path]) -> Iterator[Document]:
    """Parse files in up to two processes, as CPU affinity allows, and yield their documents in file order.

    DataError when one of the processes is killed.
    """
    processes = min(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    work = list(files.items())
    if processes == 1 or len(work) < 200:
        for item in work:
            yield from _documents(item)
        return
    with process_pool(processes, "reading documentation strings", "free some memory and run again", gc.disable) as pool:
        for documents in pool.map(_documents, work, chunksize=64):
            yield from documents


def _documents(item: tuple[str, Path]) -> list[Document]:
    name, path = item
    source = path.read_bytes()
    if b'"""' not in source and b"'''" not in source:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in third-party code
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []  # templates and files for other Python versions are not modules of this installation
    return [(text, f"{name}:{owner}") for owner, text in _strings(tree) if len(text) >= SHORTEST]


def _strings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Qualified name and text of every documentation string, in file order."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, node = waiting.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if not isinstance(node, ast.Module):
                prefix = f"{prefix}.{node.name}" if prefix else node.name
            text = ast.get_docstring(node)
            if text:
                yield prefix or "module", text.strip()
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _docstrings_set_by(node.value)
        blocks = [getattr(node, field, ()) for field in ("body", "handlers", "orelse", "finalbody")]
        inside = [child for block in blocks for child in block if isinstance(child, ast.stmt | ast.ExceptHandler)]
        waiting.extend((prefix, child) for child in reversed(inside))


def _docstrings_set_by(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Documentation strings of compiled functions: `add_newdoc("numpy", "array", "…")`."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if called in _DOCSTRING_SETTERS:
        constants = [
            node.value for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Constant)
        ]
        strings = [value for value in constants if isinstance(value, str)]
        if len(strings) > 1:
            yield ".".join(strings[:-1]), inspect.cleandoc(strings[-1]).strip()


class LabelRemover:
    """Removes names of SciPy modules from a text: import lines, dotted names, import aliases."""

    _IMPORT = re.compile(
        r"^[ \t]*(?:>>> ?|\.\.\. ?|In ?\[\d*\]: ?)?[ \t]*"
        r"(?:from[ \t]+[\w.]+[ \t]+import\b(?P<open>[ \t]*\([^)\n]*$)?"
        r"|import[ \t]+[\w.]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w.]+(?:[ \t]+as[ \t]+\w+)?)*[ \t]*(?:[;#].*)?$)"
    )
    _ALIAS = re.compile(r"(?:from[ \t]+scipy[\w.]*[ \t]+import[ \t]+\w+|import[ \t]+scipy[\w.]*)[ \t]+as[ \t]+(\w+)")
    _DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:current)?module::")

    def __init__(self, modules: set[str]) -> None:
        self._modules = modules
        names = "|".join(sorted(map(re.escape, modules), key=lambda name: (-len(name), name)))
        self._qualified = re.compile(r"\bscipy((?:\.\w+)+)", re.IGNORECASE)
        self._prefix = re.compile(rf"(?<![\w])(?:(?:{names})\.)+(?=[A-Za-z_])")

    def __call__(self, text: str) -> str:
        aliases = set(self._ALIAS.findall(text))
        lines, inside_import = [], False
        for line in text.split("\n"):
            if inside_import:
                inside_import = ")" not in line
                continue
            match = self._IMPORT.match(line)
            if match:
                inside_import = match["open"] is not None
            elif not self._DIRECTIVE.match(line):
                lines.append(line)
        text = self._qualified.sub(self._last_name, "\n".join(lines))
        text = self._prefix.sub("", text)
        for alias in sorted(aliases):
            text = re.sub(rf"(?<![\w.]){re.escape(alias)}\.(?=[A-Za-z_])", "", text)
        return text.strip()

    def _last_name(self, match: re.Match[str]) -> str:
        last = match[1].rpartition(".")[2]
        return "" if last in self._modules else last


def task_rows(task: DocumentationTask) -> Iterator[tuple[str, str, str, str]]:
    """Rows `text, label, source, part` of the SciPy task: the subpackages with the most documents, split by module.

    Parts are train, validation and test. DataError when the installed SciPy has too few subpackages.
    """
    files = {
        name: path
        for name, path in python_files({TASK}).items()
        if name.count("/") >= 2 and not _PRIVATE_CODE & set(name.split("/"))
    }
    remove = LabelRemover(_module_names(files))
    rows = [(remove(text), source.split("/")[1], source) for text, source in read_documentation(files)]
    rows = [row for row in rows if len(row[0]) >= SHORTEST and _is_of_versions(row[0], task)]
    size = Counter(label for _, label, _ in rows)
    labels = sorted(sorted(size, key=lambda label: (-size[label], label))[: task.classes])
    if len(labels) < task.classes:
        version = runtime_closure()[TASK].version
        raise DataError(
            f"SciPy {version} has {len(labels)} documented subpackages, the task requires classes: {task.classes}"
        )
    part = _parts_of_modules([(label, _module(source)) for _, label, source in rows if label in labels], task)
    for text, label, source in rows:
        if label in labels:
            yield text, label, source, part[_module(source)]


def _is_of_versions(text: str, task: DocumentationTask) -> bool:
    """Whether the latest change that `text` mentions is of the task's versions; without one it is older than all."""
    latest = max(map(version, _CHANGE.findall(text)), default=(0, 0))
    return (task.since is None or latest >= version(task.since)) and (
        task.before is None or latest < version(task.before)
    )


def _module(source: str) -> str:
    return source.partition(":")[0]


def _module_names(files: dict[str, Path]) -> set[str]:
    """Names that can precede a dot in `scipy.….`: packages and public modules."""
    names: set[str] = set()
    for name in files:
        *packages, module = name.removesuffix(".py").split("/")[1:]
        names |= set(packages)
        names |= {module} if module != "__init__" else set()
    return names


def _parts_of_modules(documents: list[tuple[str, str]], task: DocumentationTask) -> dict[str, str]:
    """Assign modules, largest first, each to the part that lacks most of its share of the label."""
    share = {
        "train": 1 - task.validation_share - task.test_share,
        "validation": task.validation_share,
        "test": task.test_share,
    }
    modules: dict[str, Counter[str]] = defaultdict(Counter)
    for label, module in documents:
        modules[label][module] += 1
    part: dict[str, str] = {}
    for label in sorted(modules):
        sizes, assigned = modules[label], Counter[str]()
        for module in sorted(sizes, key=lambda name: (-sizes[name], sha256(name.encode()).digest())):
            part[module] = max(share, key=lambda each: (share[each] * sizes.total() - assigned[each], each))
            assigned[part[module]] += sizes[module]
    return part
