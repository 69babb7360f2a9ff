"""The reference of the commands, in every language, made from the command line itself.

    python -m deploy.site.commands            # writes docs/commands.md and docs/zh/commands.md

What `cursus COMMAND --help` prints, as pages: arguments, options, defaults, examples. A test holds the pages against
the code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from flows.cli.app import app
from flows.cli.localized_help import EXAMPLE
from flows.process.stopping import INTERRUPTED, TERMINATED
from pipelines.messages.translation import ENGLISH, in_language, language, template

ROOT = Path(__file__).parents[2]
PAGES: Mapping[str, Path] = {"en": ROOT / "docs" / "commands.md", "zh": ROOT / "docs" / "zh" / "commands.md"}
"""Language → page."""
HEADS = {
    "en": f"""\
# Commands

**English** · [中文](zh/commands.md)

Written by `python -m deploy.site.commands` from the code: do not edit. `cursus --help`, and `--help` after a
command, print the same; `cursus --install-completion` completes commands, options, datasets and recipes in your shell.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | the answer is no, where the command says so below; or a mistake of Cursus, with its traceback |
| 2 | a mistake in the command, the settings, a recipe or the data: one sentence says what to do |
| {INTERRUPTED}, {TERMINATED} | stopped by Ctrl-C, by SIGTERM; the same command continues from the last checkpoint |

Options before the command:
""",
    "zh": f"""\
# 命令

[English](../commands.md) · **中文**

由 `python -m deploy.site.commands` 从代码生成：请勿编辑。`cursus --help` 以及命令之后的 `--help` 打印的内容相同；
`cursus --install-completion` 为你的 shell 安装命令、选项、数据集和配方的补全。

| 退出状态 | 含义 |
|---|---|
| 0 | 完成 |
| 1 | 答案是否定的（限下文注明的命令）；或者是 Cursus 自身的错误，附 traceback |
| 2 | 命令、设置、配方或数据有误：用一句话说明该怎么做 |
| {INTERRUPTED}、{TERMINATED} | 被 Ctrl-C、SIGTERM 停止；同一命令从最后一个检查点继续 |

写在命令之前的选项：
""",
}
CHINESE = {
    "argument, option": "参数、选项",
    "default": "默认值",
    "required": "必填",
    ", ": "、",
    "from {min}": "不小于 {min}",
    "from {min} to {max}": "{min} 到 {max}",
    "Exit status {status} where no form is within the limits.": "没有任何形式满足限制时，退出状态为 {status}。",
}
"""Words of these pages alone → Chinese; sentences of the help are translated in pipelines/messages."""
VALUES = {str: "TEXT", int: "N", float: "X", Path: "PATH"}
"""Type of a parameter → the word for its value."""
PAGE = re.compile(r"docs/(\w+\.md)")


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        page.write_text(render(name), encoding="utf-8")


def render(name: str) -> str:
    """The page in the language `name`."""
    with in_language(name):
        return "\n".join(_page(name)).rstrip() + "\n"


def commands() -> Iterator[tuple[str, str, Any]]:
    """Panel, name and Typer's object of every command; those of a group have its panel and two words."""
    program: Any = typer.main.get_command(app)
    for name, command in program.commands.items():
        group = getattr(command, "commands", None)
        for other, one in (group or {"": command}).items():
            yield command.rich_help_panel, f"{name} {other}".rstrip(), one


def _page(name: str) -> Iterator[str]:
    yield HEADS[name]
    yield from _table(typer.main.get_command(app))
    panels: dict[str, list[tuple[str, Any]]] = {}
    for panel, words, command in commands():
        panels.setdefault(panel, []).append((words, command))
    for panel, members in panels.items():
        yield f"## {template(panel)}"
        yield ""
        for words, command in members:
            yield from _command(words, command)


def _command(words: str, command: Any) -> Iterator[str]:
    paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(command.help).split("\n\n")]
    yield f"### `cursus {words}`"
    yield ""
    for text in paragraphs:
        if not text.startswith(EXAMPLE):
            yield _linked(template(text))
            yield ""
    if status := _status(command.callback, command.help):
        yield f"{status}\n"
    yield f"`{_usage(words, command)}`"
    yield ""
    for text in paragraphs:
        if text.startswith(EXAMPLE):
            yield f"```sh\n{text.removeprefix(EXAMPLE)}\n```\n"
    yield from _table(command)


def _usage(words: str, command: Any) -> str:
    """The command with the options that it cannot do without, and its arguments."""
    parameters = list(_parameters(command))
    options = [one for one in parameters if one.param_type_name == "option"]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    parts = [f"cursus {words}", *(_names(one, command) for one in options if one.required)]
    parts += ["[OPTIONS]"] if not all(one.required for one in options) else []
    parts += [_names(one, command) if one.required else f"[{_names(one, command)}]" for one in arguments]
    return " ".join(parts)


def _table(command: Any) -> Iterator[str]:
    rows = list(_parameters(command))
    if not rows:
        return
    yield f"| {_word('argument, option')} | {_word('default')} | |"
    yield "|---|---|---|"
    space = " " if language() == ENGLISH else ""
    for one in rows:
        meaning = [_linked(template(" ".join((one.help or "").split()))), *_limits(one, command)]
        yield f"| `{_names(one, command)}` | {_default(one)} | {space.join(meaning)} |"
    yield ""


def _parameters(command: Any) -> Iterator[Any]:
    for one in command.params:
        if not getattr(one, "hidden", False) and "--help" not in one.opts and "completion" not in one.name:
            yield one


def _names(one: Any, command: Any) -> str:
    """An argument in capitals; an option with the word for its value."""
    repeated = "…" if one.nargs == -1 else ""
    if one.param_type_name == "argument":
        return str(one.name).upper() + repeated
    names = " / ".join([*one.opts, *one.secondary_opts])
    return names if one.is_flag else f"{names} {VALUES.get(_type(one, command), 'CHOICE')}"


def _type(one: Any, command: Any) -> Any:
    """The type of a single value of a parameter, as the command declares it."""
    declared = get_type_hints(inspect.unwrap(command.callback))[one.name]
    while (arguments := get_args(declared)) and get_origin(declared) is not Literal:
        (declared,) = (each for each in arguments if each is not type(None))
    return declared


def _choices(declared: Any) -> list[str]:
    """The values of a type that has a few only."""
    if get_origin(declared) is Literal:
        return [str(one) for one in get_args(declared)]
    is_enumeration = isinstance(declared, type) and issubclass(declared, Enum)
    return [str(one.value) for one in declared] if is_enumeration else []


def _default(one: Any) -> str:
    if one.required:
        return _word("required")
    if one.default is None or one.default is False or callable(one.default):
        return ""
    return f"`{getattr(one.default, 'value', one.default)}`"


def _limits(one: Any, command: Any) -> Iterator[str]:
    """The values that an option takes, in parentheses."""
    least, largest, choices = getattr(one, "min", None), getattr(one, "max", None), _choices(_type(one, command))
    if choices:
        limits = _word(", ").join(f"`{choice}`" for choice in choices)
    elif least is not None:
        text = "from {min}" if largest is None else "from {min} to {max}"
        limits = _word(text).format(min=f"{least:g}", max=largest)
    else:
        return
    yield f"({limits})" if language() == ENGLISH else f"（{limits}）"


def _status(callback: Callable[..., Any], text: str) -> str | None:
    """The exit status that the command's code names and its help does not mention."""
    function = inspect.unwrap(callback)
    module = inspect.getmodule(function)
    assert module is not None
    body = ast.parse(inspect.getsource(module)).body
    for first, second in pairwise(body):
        match first, second:
            case ast.Assign([ast.Name(name)], ast.Constant(value)), ast.Expr(ast.Constant(str(documented))):
                if documented.startswith("Exit status ") and name in function.__code__.co_names and "xit" not in text:
                    sentence = documented.replace("Exit status", "Exit status {status}")
                    return _word(sentence).format(status=value)
    return None


def _word(english: str) -> str:
    return english if language() == ENGLISH else CHINESE[english]


def _linked(text: str) -> str:
    """`text` with a link for each page that it names, to the page in its language if there is one."""
    folder = PAGES[language()].parent
    return PAGE.sub(lambda name: f"[{name[0]}]({_address(name[1], folder)})", text)


def _address(page: str, folder: Path) -> str:
    return page if (folder / page).is_file() else f"../{page}"


if __name__ == "__main__":
    main()
