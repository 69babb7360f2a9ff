"""Every corpus is tokenised once: streams of tokens in a cache, named by the content of all that they are made of.

    text tables ─▶ pieces ─▶ ids, in several processes ─▶ one stream ─▶ <cache>/<key>/, mapped by every stage that reads it

The key is a digest of the tables, the tokenizer, the segmentation, how much is wanted, and this code. Stages and seeds that
agree in those share a stream; two processes that want it at once wait for the one that makes it. Killed at any moment, the
next attempt goes on with the pieces that are missing. A stream whose files are not as they were written is made anew.

Documents stand in the order of their table, which `split` shuffled: a stage that wants few tokens reads only a beginning.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pipelines.corpora.engines.work import worked
from pipelines.corpora.shards.folders import manifest
from pipelines.corpora.shards.writing import written_aside
from pipelines.errors import DataError
from pipelines.lineage.fingerprint import digest_file, fingerprint, library_versions
from pipelines.lineage.source import source_hash
from pipelines.training.batches.encoded_shards import LENGTHS as PIECE_LENGTHS
from pipelines.training.batches.encoded_shards import TOKENS as PIECE_TOKENS
from pipelines.training.batches.encoded_shards import WORD_STARTS as PIECE_WORD_STARTS
from pipelines.training.batches.encoded_shards import EncodedPiece, extents, forget_words, read_piece
from pipelines.training.batches.token_stream import COUNTS, MANIFEST, STARTS, TOKENS, WORD_STARTS, TokenStream, is_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

    from pipelines.parts.segmentations import Segmentation

ALONE_BELOW = 16 * 2**20
"""Bytes of text under which a second process costs more time than it saves."""
TOKENIZER = "tokenizer.json"
BYTES_OF_A_TOKEN = 4
"""Assumed until some text is encoded, to guess how much of it must be read."""


def token_stream(
    tables: Sequence[Path],
    tokenizer: PreTrainedTokenizerFast,
    segmentation: Segmentation | None,
    most: int | None,
    cache: Path,
    processes: int = 1,
) -> TokenStream:
    """The texts of `tables` as tokens, up to the document that reaches `most` of them (None: all of it).

    Made in `cache`, or found there. The stream is the same for any number of processes. Raises DataError when there is no
    text.
    """
    from filelock import FileLock
    from tokenizers import Tokenizer as Fast

    # a tokenizer remembers how it was last used, also when it comes from a checkpoint of somebody else's
    fast = Fast.from_str(tokenizer.backend_tokenizer.to_str())
    fast.no_truncation()
    fast.no_padding()
    end = end_of_document(tokenizer)
    identity = {
        "tables": [_digests(table) for table in tables],
        "tokenizer": sha256(fast.to_str().encode()).hexdigest(),
        "end": end,
        "segmentation": segmentation.model_dump(mode="json") if segmentation is not None else None,
        "most": most,
        "code": source_hash([__name__, *([type(segmentation).__module__] if segmentation is not None else [])]),
        "libraries": {name: library_versions()[name] for name in ("tokenizers", "numpy")},
    }
    key = fingerprint(identity)[:32]
    folder = cache / key
    if not is_whole(folder):
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f".{key}.lock"):
            # another process may have made it meanwhile
            if not is_whole(folder):
                for left in cache.glob(f".{key}-*"):
                    shutil.rmtree(left)
                home = cache / ".pieces" / key
                home.mkdir(parents=True, exist_ok=True)
                fast.save(str(home / TOKENIZER))
                kind = "uint16" if len(tokenizer) <= 2**16 else "uint32"
                units = [
                    EncodedPiece(f"{number:06d}", extent, home / TOKENIZER, end, kind, segmentation)
                    for number, extent in enumerate(extents(tables))
                ]
                pieces = _encoded(units, most, home, processes)
                forget_words()
                if not any((piece / PIECE_LENGTHS).stat().st_size for piece in pieces):
                    raise DataError(f"{', '.join(map(str, tables))}: no documents to train on")
                with written_aside(folder) as aside:
                    _join(pieces, aside, kind, len(tokenizer), most)
                shutil.rmtree(home)
    os.utime(folder)  # for what removes streams that are no longer used
    return TokenStream.open(folder)


def end_of_document(tokenizer: PreTrainedTokenizerFast) -> int:
    """The id that stands between documents: the tokenizer's separator, else its end of sequence."""
    end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    assert end is not None, "a tokenizer says how a document ends"
    return int(end)


def _digests(table: Path) -> list[str]:
    """What the files of a table hold: of a folder, as its manifest says."""
    return [shard["sha256"] for shard in manifest(table)["shards"]] if table.is_dir() else [digest_file(table)]


def _encoded(units: Sequence[EncodedPiece], most: int | None, home: Path, processes: int) -> list[Path]:
    """The folders of the first pieces, as many as hold `most` tokens; of all where there are fewer."""
    done: list[Path] = []
    tokens = read = 0
    while len(done) < len(units) and (most is None or tokens < most):
        upto = len(units)
        if most is not None:
            wanted = (most - tokens) * (read / tokens if tokens else BYTES_OF_A_TOKEN)
            ahead = np.cumsum([unit.extent.bytes for unit in units[len(done) :]])
            upto = min(upto, len(done) + int(np.searchsorted(ahead, wanted)) + 1)
        size = sum(unit.extent.bytes for unit in units[len(done) : upto])
        new = worked(units[:upto], home, processes if size > ALONE_BELOW else 1)[len(done) :]
        read += size
        tokens += sum(int(read_piece(folder, PIECE_LENGTHS, np.int64).sum()) for folder in new)
        done += new
    return done


def _join(pieces: Sequence[Path], folder: Path, kind: str, size: int, most: int | None) -> None:
    """Lay pieces end to end in `folder`, up to the document that reaches `most` tokens; the manifest is written last."""
    total, counts = 0, np.zeros(size, dtype=np.int64)
    segmented = (pieces[0] / PIECE_WORD_STARTS).exists()
    bits = np.empty(0, dtype=np.bool_)
    with _File(folder / TOKENS) as tokens, _File(folder / STARTS) as starts, _File(folder / WORD_STARTS) as words:
        for piece in pieces:
            ends = total + np.cumsum(read_piece(piece, PIECE_LENGTHS, np.int64))
            if most is not None:
                ends = ends[: int(np.searchsorted(ends, most)) + 1]
            if not len(ends):
                continue
            length = int(ends[-1]) - total
            ids = read_piece(piece, PIECE_TOKENS, kind)[:length]
            tokens.write(ids)
            starts.write(np.concatenate([[total], ends[:-1]]).astype(np.int64))
            counts += np.bincount(ids, minlength=size)
            if segmented:
                # a byte holds eight tokens, a piece any number of them
                bits = np.concatenate([bits, read_piece(piece, PIECE_WORD_STARTS, np.bool_)[:length]])
                words.write(np.packbits(bits[: len(bits) // 8 * 8], bitorder="little"))
                bits = bits[len(bits) // 8 * 8 :]
            total += length
            if most is not None and total >= most:
                break
        words.write(np.packbits(bits, bitorder="little"))
    with _File(folder / COUNTS) as counted:
        counted.write(counts)
    files = {file.path.name: file.record() for file in (tokens, starts, counted, *([words] if segmented else []))}
    if not segmented:
        (folder / WORD_STARTS).unlink()
    with _File(folder / MANIFEST) as told:
        told.write(np.frombuffer(json.dumps({"ids": kind, "files": files}, indent=2).encode(), dtype=np.uint8))


class _File:
    """A file that knows the digest of what was written to it, and is on the disk when it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest, self._bytes = sha256(), 0

    def __enter__(self) -> Self:
        self._file = self.path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def write(self, values: NDArray[Any]) -> None:
        """Append the bytes of an array."""
        data = values.tobytes()
        self._file.write(data)
        self._digest.update(data)
        self._bytes += len(data)

    def record(self) -> dict[str, Any]:
        """What the manifest says of the file."""
        return {"bytes": self._bytes, "sha256": self._digest.hexdigest()}
