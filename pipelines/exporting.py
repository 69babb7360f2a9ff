"""A model folder in the form that this machine computes fastest: every runtime is tried, checked, timed, and one is kept.

    convert ─▶ open ─▶ the same answers as float32? ─▶ the same score? ─▶ latency, in turns ─▶ the fastest that passed

    export(folder, Path("served"), material, Limits())        # served/ opens with load_predictor
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.components import did_you_mean, discover
from pipelines.corpora.writing import written_aside
from pipelines.errors import CursusError, DataError
from pipelines.exporting_measures import SHAPES, answers, cosines, overall, take_turns
from pipelines.exporting_record import EXPORT, Export, Latency, Machine, Measured
from pipelines.inference import TextEncoder
from pipelines.lineage.disk import flush
from pipelines.lineage.fingerprint import digest_file
from pipelines.lineage.provenance import FileDigest
from pipelines.runtimes import Compute, Runtime
from pipelines.runtimes.original import Original, Rows
from pipelines.text_network import longest_of, orders_of, output_of
from pipelines.training.hardware import described, extensions

REFERENCE = "torch_fp32"
COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
FEWEST_TEXTS = 8


@dataclass(frozen=True)
class Material:
    """Real texts of an export, as batches of one example, and how what a runtime answers to labelled ones is scored."""

    described: str
    """Where they are from, in words."""
    calibration: Sequence[Rows]
    """Texts that 8-bit scales are fitted to."""
    checked: Sequence[Rows]
    """Other texts, on which answers are compared."""
    score: Callable[[Compute], float] | None = None
    """The task's first metric on labelled examples; None where there are none."""
    metric: str = ""
    """Its name."""


@dataclass(frozen=True)
class Limits:
    """What a runtime must keep of float32 to be chosen, and how it is timed."""

    least_cosine: float = 0.997
    """Between the answers to a text before and after: of the checked texts, the least."""
    most_lost: float = 0.005
    """Of the task's metric."""
    threads: int = 1
    rounds: int = 30
    """Timed calls with one example; a fifth as many with many."""
    batch: int | None = None
    """Examples of the batches that decide; None: all shapes do."""
    only: tuple[str, ...] = ()
    """Runtimes to choose from; all when empty."""
    shapes: Sequence[tuple[int, int]] = field(default=SHAPES)

    @property
    def rule(self) -> str:
        """How the choice is made, in words."""
        over = "over all shapes" if self.batch is None else f"with {self.batch} examples at a time"
        return f"the highest geometric mean of speed-ups over {REFERENCE} {over}, among those within the limits"


def export(
    source: Path,
    destination: Path,
    material: Material,
    limits: Limits,
    *,
    model: str = "",
    fingerprint: str = "",
    say: Callable[[str], None] = lambda line: None,
) -> Export:
    """Write `source` into `destination` in the form of the fastest runtime that answers like it; the record of that.

    `say` is told what is being done. The folder appears whole or not at all. Raises DataError when the model cannot be
    served by a runtime, when `destination` holds something else, or when none of `limits.only` may be chosen.
    """
    output = output_of(source)
    _refuse_occupied(destination)
    runtimes = _wanted(limits.only)
    if len(material.checked) < FEWEST_TEXTS:
        raise DataError(f"{len(material.checked)} texts to compare answers on; give {FEWEST_TEXTS} or more (--texts)")
    longest = min(longest_of(source), TextEncoder(source).length)
    shapes = list(dict.fromkeys((rows, min(tokens, longest)) for rows, tokens in limits.shapes))
    left_out = {name: lacking for name, runtime in runtimes.items() if (lacking := runtime.missing())}
    computes: dict[str, Compute] = {}
    opened_in: dict[str, float] = {}
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{destination.name}-", dir=destination.parent) as aside:
        scratch = Path(aside)
        original = Original(source, scratch, material.calibration)
        for name in [name for name in runtimes if name not in left_out]:
            say(f"{name}: converting")
            out = _prepared(source, scratch / name)
            try:
                runtimes[name].convert(original, out)
                begun = time.perf_counter()
                computes[name] = runtimes[name].open(out, limits.threads)
                answers(computes[name], material.checked[:1], output)
                opened_in[name] = time.perf_counter() - begun
            except CursusError:
                raise
            except Exception as error:  # converters raise whatever their libraries do; one that fails is no reason to stop
                if name == REFERENCE:
                    raise
                left_out[name] = f"it failed: {type(error).__name__}: {str(error).strip().splitlines()[0][:300]}"
        checks = _checks(computes, material, output, limits, say)
        say(f"timing {', '.join(computes)} in turns")
        tokens = np.concatenate([rows[0].ravel() for rows in material.checked])
        timed = take_turns(computes, REFERENCE, tokens, shapes, limits.rounds, orders_of(source))
        measured = {
            name: _measured(checks[name], timed[name], opened_in[name], scratch / name) for name in computes
        }
        chosen = _chosen(measured, limits, left_out)
        say(f"{chosen}: chosen; writing {destination}")
        record = Export(
            runtime=runtimes[chosen],
            rule=limits.rule,
            source=fingerprint or _digest(source),
            model=model or str(source),
            output=output,
            machine=_machine(runtimes, limits.threads),
            checked={
                "texts": len(material.checked),
                "from": material.described,
                "least_cosine": limits.least_cosine,
                "metric": material.metric or None,
                "most_lost": limits.most_lost,
            },
            measured=measured,
            left_out=left_out,
            files={path.name: FileDigest(sha256=digest_file(path), bytes=path.stat().st_size)
                   for path in sorted((scratch / chosen).iterdir())},
        )
        with written_aside(destination) as folder:
            for path in sorted((scratch / chosen).iterdir()):
                os.replace(path, folder / path.name)
                flush(folder / path.name)
            (folder / EXPORT).write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
            flush(folder / EXPORT)
            flush(folder)
    flush(destination.parent)
    return record


def _wanted(only: Sequence[str]) -> dict[str, Runtime]:
    """The runtimes to try, that with which the others are compared first."""
    discover("pipelines.runtimes")
    known = sorted(Runtime.members)
    for name in only:
        if name not in known:
            raise DataError(f"no runtime is called {name!r}.{did_you_mean(name, known)}")
    chosen = [name for name in known if not only or name in only]
    return {name: Runtime.model_validate(name) for name in dict.fromkeys([REFERENCE, *chosen])}


def _checks(
    computes: Mapping[str, Compute],
    material: Material,
    output: str,
    limits: Limits,
    say: Callable[[str], None],
) -> dict[str, Measured]:
    """What each runtime answers, beside the reference, and why it may not be chosen."""
    from pipelines.text_network import Output

    expected = answers(computes[REFERENCE], material.checked, Output(output))
    wanted = material.score(computes[REFERENCE]) if material.score else None
    found = {}
    for name, compute in computes.items():
        say(f"{name}: comparing answers")
        given = expected if name == REFERENCE else answers(compute, material.checked, Output(output))
        alike = cosines(expected, given)
        score = wanted if name == REFERENCE or material.score is None else material.score(compute)
        refused = []
        least = round(float(alike.min()), 6)
        if name != REFERENCE and least < limits.least_cosine:
            refused.append(f"cosine {least:.4f} with float32 on one of {len(given)} texts, less than {limits.least_cosine}")
        if score is not None and wanted is not None and wanted - score > limits.most_lost:
            refused.append(f"{material.metric} {score:.4f} where float32 has {wanted:.4f}, more than {limits.most_lost} less")
        found[name] = Measured(
            cosine_least=least,
            cosine_mean=round(float(alike.mean()), 6),
            score=score,
            score_float32=wanted,
            bytes=0,
            seconds_to_open=0,
            refused="; ".join(refused) or None,
        )
    return found


def _measured(checked: Measured, latency: tuple[Latency, ...], opened_in: float, folder: Path) -> Measured:
    size = sum(path.stat().st_size for path in folder.iterdir())
    return checked.model_copy(update={"latency": latency, "seconds_to_open": round(opened_in, 3), "bytes": size})


def _chosen(measured: Mapping[str, Measured], limits: Limits, left_out: Mapping[str, str]) -> str:
    allowed = [name for name, found in measured.items() if not found.refused and (not limits.only or name in limits.only)]
    if not allowed:
        why = [f"{name}: {found.refused}" for name, found in measured.items() if found.refused and name in limits.only]
        why += [f"{name}: {reason}" for name, reason in left_out.items() if name in limits.only]
        raise DataError(f"none of {', '.join(limits.only)} may be chosen. {'; '.join(why)}. Nothing was written")
    return max(allowed, key=lambda name: overall(measured[name].latency, limits.batch))


def _prepared(source: Path, out: Path) -> Path:
    """A new folder with the configuration and the tokenizer of `source`."""
    out.mkdir()
    for name in COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, out / name)
    return out


def _refuse_occupied(destination: Path) -> None:
    """An earlier export may be replaced; anything else is somebody's work."""
    if destination.exists() and not (destination / EXPORT).is_file() and (
        not destination.is_dir() or any(destination.iterdir())
    ):
        raise DataError(f"{destination}: holds something that is no export; name a folder that does not exist yet")


def _digest(source: Path) -> str:
    weights = sorted(source.glob("*.safetensors"))
    return digest_file(weights[0]) if weights else ""


def _machine(runtimes: Mapping[str, Runtime], threads: int) -> Machine:
    asked = {name for runtime in Runtime.members.values() for name in runtime().instructions}
    packages = {name for runtime in runtimes.values() for name in runtime.packages if runtime.missing() is None}
    return Machine(
        processor=described("cpu"),
        instructions=tuple(sorted(asked & extensions())),
        threads=threads,
        versions={name: importlib.metadata.version(name) for name in sorted(packages)},
    )


def one_by_one(batch: tuple[NDArray[np.int64], NDArray[np.int64]], row: int) -> Rows:
    """Row `row` of ids and mask [B, L] as a batch of its own, without padding."""
    ids, mask = batch
    size = int(mask[row].sum())
    return ids[row : row + 1, :size], mask[row : row + 1, :size], None
