"""Files of a model folder: their kinds, and what their first bytes show."""

from __future__ import annotations

import os
import pickletools
import re
import stat
from pathlib import Path

from pipelines.safety.model_folders.rejection import UnsafeFolderError

PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".dill")
"""File extensions of pickles."""
PARSED = (".json", ".safetensors")
"""File extensions of formats that are checked as a whole, so their first bytes decide nothing."""
MOST_FILES = 20_000
DEEPEST_FOLDER = 16
HEAD_BYTES = 2**16
"""Bytes of a file from which its kind is determined."""
ADAPTER = "adapter_config.json"
ARCHIVES = (
    (0, b"PK\x03\x04", "zip"),
    (0, b"PK\x05\x06", "zip"),
    (257, b"ustar", "tar"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ", "xz"),
    (0, b"\x28\xb5\x2f\xfd", "zstandard"),
    (0, b"\x04\x22\x4d\x18", "lz4"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z"),
)
"""Offset, bytes and name of each format that contains other files; torch saves pickles in the first and the third."""
NEWEST_PROTOCOL = 5
"""Newest protocol of pickles in Python 3.14."""
GLOBALS = {"GLOBAL", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"}
CALLS = {"REDUCE", "NEWOBJ", "NEWOBJ_EX"}
CALLS_OF_MARK = {"INST", "OBJ"}
_NAME_OF_OBJECT = re.compile(r"[A-Za-z_][\w.]* [A-Za-z_][\w.]*")
"""Module and name of an object that a pickle looks up."""
TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"}


def files_of(folder: Path) -> list[Path]:
    """Every file below `folder`, sorted. Links to folders, special files and links out of `folder` are rejected."""
    files: list[Path] = []
    waiting = [(folder, 0)]
    while waiting:
        current, depth = waiting.pop()
        if depth > DEEPEST_FOLDER:
            raise UnsafeFolderError(f"{current}: folders are nested more than {DEEPEST_FOLDER} deep; no model's are")
        with os.scandir(current) as entries:
            for entry in entries:
                path = current / entry.name
                if entry.is_symlink():
                    _check_link(path, folder)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append((path, depth + 1))
                    continue
                elif not entry.is_file(follow_symlinks=False):
                    raise UnsafeFolderError(
                        f"{path}: neither a file nor a folder, but a pipe, a socket or a device; remove it"
                    )
                files.append(path)
                if len(files) > MOST_FILES:
                    raise UnsafeFolderError(f"{folder}: more than {MOST_FILES:,} files; give the folder of one model")
    return sorted(files)


def _check_link(path: Path, folder: Path) -> None:
    target = Path(os.path.realpath(path))
    try:
        kind = path.stat().st_mode
    except OSError:  # also a loop of links
        raise UnsafeFolderError(
            f"{path}: this link leads to no file, or in a circle; copy the file into the folder"
        ) from None
    home = Path(os.path.realpath(folder))
    if home.parent.name == "snapshots":  # Hugging Face's cache links to files that all snapshots of a model share
        home = home.parents[1]
    if not target.is_relative_to(home):
        raise UnsafeFolderError(
            f"{path}: this link leaves {folder} for {target}; to use the file, copy it into the folder"
        )
    if not stat.S_ISREG(kind):
        raise UnsafeFolderError(f"{path}: this link does not lead to a file; only links to files are followed")


def check_kind(path: Path, folder: Path) -> None:
    """Reject a pickle or an archive, whatever its name."""
    name = path.relative_to(folder).as_posix()
    if path.suffix.lower() in PICKLES:
        raise UnsafeFolderError(_pickle(path, name))
    if path.name == ADAPTER:
        raise UnsafeFolderError(
            f"{path}: an adapter, which names a base model outside of this folder; merge it into the model, and remove "
            f"{name}"
        )
    if path.suffix.lower() in PARSED:
        return
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    for offset, magic, kind in ARCHIVES:
        if head.startswith(magic, offset):
            raise UnsafeFolderError(
                f"{path}: a {kind} archive, in which a pickle can be; only safetensors are read. Remove {name} from "
                "the folder"
            )
    if head.startswith(b"\x93NUMPY") and b"|O" in head[:1024]:
        raise UnsafeFolderError(_pickle(path, name))
    if is_pickle(head):
        raise UnsafeFolderError(_pickle(path, name))


def _pickle(path: Path, name: str) -> str:
    return (
        f"{path}: a pickle, which can execute code when it is read; only safetensors are read. Convert the model with "
        f"save_pretrained first, and remove {name} from the folder"
    )


def is_pickle(head: bytes) -> bool:
    """Whether a file that begins with `head` is a pickle. Its opcodes are decoded, never executed.

    From protocol 2 on a pickle states its protocol, and torch's older checkpoints are such pickles. Older protocols are
    text: that the opcodes call what they look up tells them from other texts.
    """
    marked = len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= NEWEST_PROTOCOL
    looked_up = arguments = opened = False
    count = 0
    try:
        for opcode, argument, _ in pickletools.genops(head):
            count += 1
            if opcode.name in ("GLOBAL", "INST") and not _NAME_OF_OBJECT.fullmatch(str(argument)):
                return marked
            looked_up |= opcode.name in GLOBALS
            arguments |= looked_up and opcode.name in TUPLES
            if (arguments and opcode.name in CALLS) or (opened and opcode.name in CALLS_OF_MARK):
                return True
            opened |= opcode.name == "MARK"
    except (ValueError, UnicodeDecodeError) as error:
        # of a long pickle `head` is only the beginning; other data stops at a byte that is no opcode
        return marked and count > 2 and "unknown" not in str(error)
    return marked
