"""Nothing in the project reads code as data or runs a string; where a call has a safe form, that one is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.steps import ROOT

ROOMS = ("cursus", "flows", "tasks", "pipelines", "benchmarks")
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "telnetlib"}
WEIGHTS_ONLY = "torch.load only with weights_only=True: anything else unpickles"


def rule_for_calls(call: ast.Call, name: str) -> str | None:
    """What is wrong with a call of `name` (dotted, as written); None where nothing is."""
    given = {word.arg: word.value for word in call.keywords}
    last = name.rpartition(".")[2]
    if name in ("eval", "exec", "compile", "__import__", "os.system", "os.popen", "builtins.eval", "builtins.exec"):
        return f"{name} runs a string"
    if name in ("torch.load", "load_from_checkpoint") or last == "load_from_checkpoint":
        return None if _is(given.get("weights_only"), True) else WEIGHTS_ONLY
    if last in ("load", "load_all", "full_load", "unsafe_load") and name.startswith("yaml."):
        return "PyYAML's loaders make objects: use ruamel's YAML(typ='safe') or YAML(typ='rt')"
    if last == "YAML" and not any(_is(given.get("typ"), kind) for kind in ("safe", "rt")):
        return "say which loader: YAML(typ='safe'), or 'rt' where lines are needed; the others make objects"
    if last in ("extractall", "extract", "unpack_archive") and not _is(given.get("filter"), "data"):
        return "unpack with filter='data': members may lead out of the folder"
    if last == "from_pretrained" and name.split(".")[0].startswith("Auto"):
        spread = any(word.arg is None for word in call.keywords)
        if not spread and not _is(given.get("trust_remote_code"), False):
            return "say trust_remote_code=False: the default asks the person at the terminal"
    for word, unsafe in (("shell", True), ("allow_pickle", True), ("trust_remote_code", True), ("weights_only", False)):
        if word in given and _is(given[word], unsafe):
            return f"{word}={unsafe}"
    return None


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value and type(node.value) is type(value)


def dotted(node: ast.expr) -> str:
    """`torch.load` of the node that names it; `().load` of what a call answered."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value) or '()'}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def violations(tree: ast.AST) -> Iterator[tuple[int, str]]:
    templates = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "jinja2"
        for alias in node.names
        if alias.name in ("Environment", "NativeEnvironment", "Template")
    }
    for node in ast.walk(tree):
        made = dotted(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and made in templates and "autoescape" not in {one.arg for one in node.keywords}:
            yield node.lineno, "say autoescape: texts of users stand on pages"
        if isinstance(node, ast.Call) and (problem := rule_for_calls(node, dotted(node.func))):
            yield node.lineno, problem
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [node.module or ""]
        for module in named:
            if module.split(".")[0] in UNSAFE_MODULES:
                yield node.lineno, f"{module} reads code as data"
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if _is(key, "trust_remote_code") and not _is(value, False):
                    yield node.lineno, "trust_remote_code is False, always"


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_reads_code_as_data_or_runs_a_string(room: str) -> None:
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    found = [
        f"{path.relative_to(ROOT)}:{line}: {problem}"
        for path in files
        for line, problem in violations(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "yaml.load(text, Loader=yaml.Loader)",
        "YAML().load(text)",
        "YAML(typ='unsafe')",
        "eval('1')",
        "exec(text)",
        "os.system('ls')",
        "np.load(path, allow_pickle=True)",
        "AutoModel.from_pretrained(path)",
        "AutoConfig.from_pretrained(path, trust_remote_code=True)",
        "subprocess.run('ls', shell=True)",
        "tar.extractall(folder)",
        "tar.extract(member, folder)",
        "tar.extract(member, folder, filter='tar')",
        "shutil.unpack_archive(path)",
        "from jinja2 import Environment; Environment(loader=loader)",
        "safely = {'trust_remote_code': True}",
    ],
)
def test_the_search_finds_each_of_them(code: str) -> None:
    assert list(violations(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "torch.load(path, weights_only=True)",
        "YAML(typ='safe').load(text)",
        "np.load(path)",
        "json.load(file)",
        "network.eval()",
        "re.compile('x')",
        "tar.extract(member, folder, filter='data')",
        "AutoModel.from_pretrained(path, trust_remote_code=False)",
        "from jinja2 import Environment; Environment(autoescape=True)",
    ],
)
def test_the_search_lets_the_safe_form_pass(code: str) -> None:
    assert not list(violations(ast.parse(code)))
