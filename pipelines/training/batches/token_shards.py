"""Cache of tokenised corpora: each token stream is computed once, under a digest of everything it depends on.

    text tables ─▶ row groups ─▶ ids, in several processes ─▶ one stream ─▶ <cache>/<key>/, mapped by every stage that
    reads it

The key is a digest of the tables and their columns, the tokenizer, the segmentation, the annotations, the number of
tokens, and this code. Stages and seeds that agree in those share a stream; of two processes that need it at once, one
computes it and the other waits. After a kill, the next attempt continues with the units that are missing. A stream with
damaged files is computed again.

Documents are in the order of their table, which `split` shuffled: a stage that needs few tokens reads only the
beginning.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.corpora.engines.work import run_units
from pipelines.corpora.shards.folders import manifest
from pipelines.corpora.shards.writing import replaced_atomically
from pipelines.errors import DataError
from pipelines.lineage.fingerprint import digest_file, fingerprint, library_versions
from pipelines.lineage.source import source_hash
from pipelines.parts.annotations import Annotation, ModelAnnotation
from pipelines.training.batches.digesting_file import DigestingFile
from pipelines.training.batches.encoded_documents import DocumentChannels
from pipelines.training.batches.encoded_shards import LENGTHS as UNIT_LENGTHS
from pipelines.training.batches.encoded_shards import TOKENS as UNIT_TOKENS
from pipelines.training.batches.encoded_shards import EncodingUnit, clear_word_cache, read_encoded, row_group_ranges
from pipelines.training.batches.special_tokens import document_texts
from pipelines.training.batches.token_channels import channel_records, file_of, is_bits, kind_of
from pipelines.training.batches.token_stream import COUNTS, MANIFEST, STARTS, TOKENS, TokenStream, is_whole
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

    from pipelines.parts.segmentations import Segmentation

ONE_PROCESS_BELOW = 16 * 2**20
"""Bytes of text below which a second process costs more time than it saves."""
TOKENIZER = "tokenizer.json"
BYTES_PER_TOKEN = 4
"""Assumed until some text is encoded, to estimate how much text must be read."""


def token_stream(
    tables: Sequence[Path],
    tokenizer: PreTrainedTokenizerFast,
    segmentation: Segmentation | None,
    most: int | None,
    cache: Path,
    processes: int = 1,
    annotations: Sequence[Annotation] = (),
    columns: Sequence[str] = (),
) -> TokenStream:
    """The documents of `tables` as tokens, up to the one with which there are `most` tokens (None: all of them), with
    the channels of `segmentation` and `annotations`. A document is the texts in `columns`, or its column `text`.

    Read from `cache`, or computed into it. The stream is the same for any number of processes. Raises DataError when
    there is no text, and, naming file and row, for a document that cannot be annotated.
    """
    from filelock import FileLock
    from tokenizers import Tokenizer as Fast

    # a saved tokenizer keeps the truncation and padding of its last use, also in third-party checkpoints
    fast = Fast.from_str(tokenizer.backend_tokenizer.to_str())
    fast.no_truncation()
    fast.no_padding()
    texts = document_texts(tokenizer, columns)
    made = DocumentChannels(segmentation, tuple(annotations), len(texts.columns))
    makers = [*([segmentation] if segmentation is not None else []), *annotations]
    read = {type(one.model) for one in annotations if isinstance(one, ModelAnnotation)}
    identity = {
        "tables": [_table_digests(table) for table in tables],
        "tokenizer": sha256(fast.to_str().encode()).hexdigest(),
        "texts": asdict(texts),
        "segmentation": segmentation.model_dump(mode="json") if segmentation is not None else None,
        "annotations": [one.model_dump(mode="json") for one in annotations],
        "files": [digest_file(path) for one in makers for path in one.reads_files],
        "most": most,
        "code": source_hash(
            [__name__, *sorted({*(type(one).__module__ for one in makers), *(one.__module__ for one in read)})]
        ),
        "libraries": {name: library_versions()[name] for name in ("tokenizers", "numpy")},
    }
    key = fingerprint(identity)[:32]
    folder = cache / key
    if not is_whole(folder):
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f".{key}.lock"):
            # another process may have computed it meanwhile
            if not is_whole(folder):
                for left in cache.glob(f".{key}-*"):
                    shutil.rmtree(left)
                home = cache / ".pieces" / key
                home.mkdir(parents=True, exist_ok=True)
                fast.save(str(home / TOKENIZER))
                kind = "uint16" if len(tokenizer) <= 2**16 else "uint32"
                units = [
                    EncodingUnit(f"{number:06d}", source, home / TOKENIZER, kind, texts, made)
                    for number, source in enumerate(row_group_ranges(tables))
                ]
                encoded = _encode_units(units, most, home, processes)
                clear_word_cache()
                if not any((unit / UNIT_LENGTHS).stat().st_size for unit in encoded):
                    raise DataError(f"{', '.join(map(str, tables))}: no documents to train on")
                with replaced_atomically(folder) as temporary:
                    _join(encoded, temporary, kind, len(tokenizer), most, made.channels)
                shutil.rmtree(home)
    os.utime(folder)  # `upkeep.unneeded` removes streams by their last use
    return TokenStream.open(folder)


def _table_digests(table: Path) -> list[str]:
    """Digests of the files of a table; those of a folder are read from its manifest."""
    return [shard["sha256"] for shard in manifest(table)["shards"]] if table.is_dir() else [digest_file(table)]


def _encode_units(units: Sequence[EncodingUnit], most: int | None, home: Path, processes: int) -> list[Path]:
    """Encode the first units, as many as hold `most` tokens, or all; returns their folders."""
    done: list[Path] = []
    tokens = read = 0
    while len(done) < len(units) and (most is None or tokens < most):
        upto = len(units)
        if most is not None:
            required = (most - tokens) * (read / tokens if tokens else BYTES_PER_TOKEN)
            ahead = np.cumsum([unit.source.bytes for unit in units[len(done) :]])
            upto = min(upto, len(done) + int(np.searchsorted(ahead, required)) + 1)
        size = sum(unit.source.bytes for unit in units[len(done) : upto])
        new = run_units(units[:upto], home, processes if size > ONE_PROCESS_BELOW else 1)[len(done) :]
        read += size
        tokens += sum(int(read_encoded(folder, UNIT_LENGTHS, np.int64).sum()) for folder in new)
        done += new
    return done


def _join(
    units: Sequence[Path], folder: Path, kind: str, size: int, most: int | None, channels: Sequence[Channel]
) -> None:
    """Concatenate encoded units into `folder`, up to the document with which there are `most` tokens; writes the
    manifest last."""
    total, counts = 0, np.zeros(size, dtype=np.int64)
    with ExitStack() as files:
        tokens, starts = (files.enter_context(DigestingFile(folder / name)) for name in (TOKENS, STARTS))
        alongside = [files.enter_context(_ChannelFile(folder, channel)) for channel in channels]
        for unit in units:
            ends = total + np.cumsum(read_encoded(unit, UNIT_LENGTHS, np.int64))
            if most is not None:
                ends = ends[: int(np.searchsorted(ends, most)) + 1]
            if not len(ends):
                continue
            length = int(ends[-1]) - total
            ids = read_encoded(unit, UNIT_TOKENS, kind)[:length]
            tokens.write(ids)
            starts.write(np.concatenate([[total], ends[:-1]]).astype(np.int64))
            counts += np.bincount(ids, minlength=size)
            for one in alongside:
                one.append_unit(unit, length)
            total += length
            if most is not None and total >= most:
                break
    with DigestingFile(folder / COUNTS) as counted:
        counted.write(counts)
    content = {
        "ids": kind,
        "channels": channel_records(channels),
        "files": {file.path.name: file.record() for file in (tokens, starts, counted, *alongside)},
    }
    with DigestingFile(folder / MANIFEST) as manifest_file:
        manifest_file.write(np.frombuffer(json.dumps(content, indent=2).encode(), dtype=np.uint8))


class _ChannelFile(DigestingFile):
    """The values of a channel; bits are packed, so that a byte may hold tokens of two units."""

    def __init__(self, folder: Path, channel: Channel) -> None:
        super().__init__(folder / file_of(channel))
        self._channel = channel
        self._bits: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def append_unit(self, unit: Path, length: int) -> None:
        """Append the values of the first `length` tokens of `unit`."""
        values = read_encoded(unit, file_of(self._channel), kind_of(self._channel))
        if not is_bits(self._channel):
            self.write(values.reshape(-1, *self._channel.shape)[:length])
            return
        self._bits = np.concatenate([self._bits, values[:length]])
        whole = len(self._bits) // 8 * 8
        self.write(np.packbits(self._bits[:whole], bitorder="little"))
        self._bits = self._bits[whole:]

    def __exit__(self, *error: object) -> None:
        self.write(np.packbits(self._bits, bitorder="little"))
        super().__exit__(*error)
