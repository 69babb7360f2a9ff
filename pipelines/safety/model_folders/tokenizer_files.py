"""Tokenizer files: a vocabulary that is not empty, ids inside it and inside the embeddings, lengths, and growth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.safety.model_folders.expressions import check_expression
from pipelines.safety.model_folders.json_files import shown
from pipelines.safety.model_folders.rejection import UnsafeFolderError

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
PLAIN = ("vocab.txt", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
VOCABULARIES = (TOKENIZER, SETTINGS, "vocab.json", *PLAIN)
"""Files from which transformers makes a tokenizer."""
MOST_GROWTH = 256
"""Maximum factor by which normalisation may lengthen a text."""
LONGEST_ROW = 2**20
MOST_EXPRESSIONS = 64


def check_vocabulary_file(path: Path, value: Any, config: dict[str, Any]) -> None:
    """Raise UnsafeFolderError for a tokenizer file that cannot belong to a model with `config`."""
    rows = config.get("vocab_size")
    rows = rows if type(rows) is int else None
    if path.name == TOKENIZER:
        _check_tokenizer(path, value, rows)
    elif path.name == "vocab.json":
        _check_ids(path, "an id", value, rows)
    elif path.name == SETTINGS:
        _check_settings(path, value, rows)
    elif not path.stat().st_size:
        raise UnsafeFolderError(f"{path}: empty, so the tokenizer has no vocabulary; save the tokenizer again")


def _check_tokenizer(path: Path, value: dict[str, Any], rows: int | None) -> None:
    model = value.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, (dict, list)) or not vocabulary:
        raise UnsafeFolderError(f"{path}: model.vocab is empty, so no text has tokens; save the tokenizer again")
    if isinstance(vocabulary, dict):
        _check_ids(path, "model.vocab", vocabulary, rows)
        known = max(vocabulary.values()) + 1
    else:
        known = len(vocabulary)
        if rows is not None and known > rows:
            raise UnsafeFolderError(
                f"{path}: model.vocab has {known:,} tokens, and config.json a vocab_size of {rows:,}"
            )
    added = value.get("added_tokens") or []
    if not isinstance(added, list):
        raise UnsafeFolderError(f"{path}: added_tokens is {shown(added)}; expected a list")
    most = rows or known + len(added)
    for token in added:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str) or not token["content"]:
            raise UnsafeFolderError(f"{path}: added_tokens: {shown(token)} has no content; remove it")
        _check_id(path, f"added_tokens: the id of {shown(token['content'])}", token.get("id"), most)
    for where, processor in _objects("post_processor", value.get("post_processor")):
        ids = processor.get("ids", [])
        for one in ids if isinstance(ids, list) else [ids]:
            _check_id(path, f"{where}.ids", one, most)
        for key in ("sep", "cls"):
            pair = processor.get(key)
            if isinstance(pair, list) and len(pair) == 2:
                _check_id(path, f"{where}.{key}", pair[1], most)
    _check_lengths(path, value, most)
    expressions = [
        (where, one["Regex"]) for where, one in _objects("", {**value, "model": None, "added_tokens": None})
        if isinstance(one.get("Regex"), str)
    ]  # fmt: skip
    if len(expressions) > MOST_EXPRESSIONS:
        raise UnsafeFolderError(f"{path}: {len(expressions):,} regular expressions; no tokenizer has more than a few")
    for where, expression in expressions:
        check_expression(f"{path}: {where}", expression)
    _check_growth(path, value.get("normalizer"))


def _check_lengths(path: Path, value: dict[str, Any], most: int) -> None:
    truncation, padding = value.get("truncation"), value.get("padding")
    if isinstance(truncation, dict):
        _check_length(path, "truncation.max_length", truncation.get("max_length"), 1, 2**63)
        _check_length(path, "truncation.stride", truncation.get("stride", 0), 0, truncation["max_length"] - 1)
    if isinstance(padding, dict):
        strategy = padding.get("strategy")
        if isinstance(strategy, dict):
            _check_length(path, "padding.strategy.Fixed", strategy.get("Fixed"), 1, LONGEST_ROW)
        if padding.get("pad_to_multiple_of") is not None:
            _check_length(path, "padding.pad_to_multiple_of", padding["pad_to_multiple_of"], 1, LONGEST_ROW)
        _check_id(path, "padding.pad_id", padding.get("pad_id", 0), most)


def _check_settings(path: Path, value: dict[str, Any], rows: int | None) -> None:
    longest = value.get("model_max_length")
    if longest is not None and (isinstance(longest, bool) or not isinstance(longest, (int, float)) or not longest > 0):
        raise UnsafeFolderError(f"{path}: model_max_length is {shown(longest)}; expected a number above 0")
    added = value.get("added_tokens_decoder")
    for key in added if isinstance(added, dict) else ():
        _check_id(path, "added_tokens_decoder", int(key) if key.isdecimal() and len(key) < 19 else key, rows)


def _check_ids(path: Path, where: str, vocabulary: Any, rows: int | None) -> None:
    if not isinstance(vocabulary, dict) or not vocabulary:
        raise UnsafeFolderError(f"{path}: empty, so the tokenizer has no vocabulary; save the tokenizer again")
    most = rows or 2 * len(vocabulary) + 2**16
    for token, number in vocabulary.items():
        if type(number) is not int or not 0 <= number < most:
            _check_id(path, f"{where} of {shown(token)}", number, most)


def _check_id(path: Path, where: str, number: Any, rows: int | None) -> None:
    if type(number) is not int or number < 0 or (rows is not None and number >= rows):
        limit = "" if rows is None else f" below {rows:,}, the size of the vocabulary"
        raise UnsafeFolderError(f"{path}: {where} is {shown(number)}; expected an id of 0 or more{limit}")


def _check_length(path: Path, where: str, number: Any, least: int, most: int) -> None:
    if type(number) is not int or not least <= number <= most:
        raise UnsafeFolderError(f"{path}: {where} is {shown(number)}; expected a number from {least:,} to {most:,}")


def _check_growth(path: Path, normalizer: Any) -> None:
    """Check how much longer replacements make a text, one after the other."""
    growth = 1.0
    for _, one in reversed(list(_objects("normalizer", normalizer))):
        pattern, content = one.get("pattern"), one.get("content")
        if isinstance(content, str) and isinstance(pattern, dict):
            replaced = pattern.get("String")
            growth *= max(1.0, len(content) / max(1, len(replaced) if isinstance(replaced, str) else 1))
        if growth > MOST_GROWTH:
            raise UnsafeFolderError(
                f"{path}: normalizer: its replacements make a text more than {MOST_GROWTH} times as long; no tokenizer "
                "needs that"
            )


def _objects(where: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object at or below `value`, with its path."""
    if isinstance(value, dict):
        yield where, value
        for key, one in value.items():
            yield from _objects(f"{where}.{key}" if where else str(key), one)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _objects(f"{where}.{number}", one)
