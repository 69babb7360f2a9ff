"""Plain YAML read by the C parser, a tenth of the time: block and flow mappings, lists, texts and simple numbers.

Scalars are resolved by ruamel's rules of YAML 1.2, as in `pipelines.components.plain_yaml`. Whatever the two parsers
might read in two ways is left to that one: tags, anchors, merge keys, directives, tabs, control characters, several
documents, duplicate and empty keys, numbers in other notations, and every mistake, for which it has the message.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

DEEPEST = 50
"""Levels of nesting that are read here; deeper ones are left to the other reader, which says what is wrong."""
_UNUSUAL = re.compile(
    r"[^\n -~¡-\u1fff\u2010-\u2027\u2030-\ud7ff\uf900-\ufdcf\ufe70-\ufefc\uff00-\uffef]"  # control characters, breaks
    r"|(?:^|[\s\[{,:-])(?:[!&*](?:\S|$)|\?)"  # tags, anchors, aliases, explicit keys
    r"|<<|^%|^---|^\.\.\.|\{\s*,|\[\s*,",
    re.MULTILINE,
)
_BRACKETS = re.compile(r"[\[\]{}]")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"
_CONSTANTS = {("bool", "true"): True, ("bool", "false"): False, ("null", "null"): None, ("null", ""): None}


class _Unusual(Exception):
    """Something that is left to the other reader."""


def read_quickly(text: str) -> tuple[dict[str, Any], dict[tuple[str, ...], int]] | None:
    """The mapping in `text` as plain values, and key path → line, from 1, of every key and entry; None where it is left
    to `pipelines.components.plain_yaml`."""
    if _UNUSUAL.search(text) or _depth(text) > DEEPEST:
        return None
    lines: dict[tuple[str, ...], int] = {(): 1}
    try:
        node = YAML(typ="safe").compose(text)
        return (_plain(node, (), lines), lines) if isinstance(node, MappingNode) else None
    except (YAMLError, _Unusual, RecursionError, ValueError):
        return None


def _depth(text: str) -> int:
    """The largest number of brackets around a place, were none of them part of a text."""
    depth = deepest = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _plain(node: Node, path: tuple[str, ...], lines: dict[tuple[str, ...], int]) -> Any:
    if len(path) > DEEPEST:
        raise _Unusual
    if isinstance(node, MappingNode):
        result: dict[str, Any] = {}
        for key_node, value in node.value:
            key = _scalar(key_node)
            if not isinstance(key, str) or key in result:
                raise _Unusual
            lines[(*path, key)] = key_node.start_mark.line + 1
            result[key] = _plain(value, (*path, key), lines)
        return result
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*path, str(index))] = item.start_mark.line + 1
        return [_plain(item, (*path, str(index)), lines) for index, item in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: Node) -> Any:
    if not isinstance(node, ScalarNode):
        raise _Unusual
    kind, value = str(node.tag).removeprefix(_TAG), node.value
    if kind == "str":
        return value
    if kind == "int" and _INTEGER.fullmatch(value):
        return int(value)
    if kind == "float" and _NUMBER.fullmatch(value):
        return float(value)
    if (kind, value) in _CONSTANTS:
        return _CONSTANTS[kind, value]
    raise _Unusual
