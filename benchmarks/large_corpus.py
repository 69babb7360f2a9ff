"""All data steps on a corpus larger than memory: peak memory of the whole process tree, and recovery after kill -9.

    python -m benchmarks.large_corpus --gigabytes 5                 # undisturbed: seconds and peak memory of every step
    python -m benchmarks.large_corpus --gigabytes 5 --kills 3       # the same, killed at random moments, then compared

The text is repeated documentation strings, in which a share of the words is replaced at random in each repetition, so
that repetitions are distinct texts. It is generated once (`--folder`), as are the digests of the undisturbed run, with
which a disturbed run is compared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

from benchmarks.checkouts import checkout
from benchmarks.harness.memory import sampled, tree
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.duplicates.overlap import words
from pipelines.lineage.disk import atomic_write

FILE_BYTES = 256 * 2**20
DRAWN = 0.2
"""Share of words that are replaced at random in each repetition."""

PARAMS = """\
runtime: {{memory: 1GiB}}
datasets:
  large:
    general: [{{path: "{texts}"}}]
    domain: [{{documentation: domain}}]
    task: {{documentation: scipy, labels_per_class: 20}}
"""


def main() -> None:
    """Generate the text if needed, run the steps, and print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=5)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/cursus-large-corpus"))
    parser.add_argument("--kills", type=int, default=0, help="how often the steps are killed before they may finish")
    options = parser.parse_args()
    texts = options.folder / f"texts-{options.gigabytes:g}"
    make_texts(texts, round(options.gigabytes * 1e9))
    folder = checkout(with_data=False)
    (folder / "params.yaml").write_text(PARAMS.format(texts=texts), encoding="utf-8")
    chance = random.Random()
    for number in range(options.kills):
        seconds = chance.uniform(10, 60 * options.gigabytes)
        print(f"kill {number + 1}: after {seconds:.0f} s", flush=True)
        run(folder, seconds)
    peaks, seconds = run(folder)
    for step, peak in peaks.items():
        print(f"{step:<16} peak {peak / 2**20:6.0f} MiB")
    size = sum(file.stat().st_size for file in texts.iterdir())
    print(f"{size / 1e9:.2f} GB on disk in {seconds:.0f} s; peak of all steps {max(peaks.values()) / 2**20:.0f} MiB")
    compare(options.folder / f"digests-{options.gigabytes:g}.json", digests(folder), disturbed=options.kills > 0)


def make_texts(folder: Path, size: int) -> None:
    """Write `size` bytes of JSON lines in files of FILE_BYTES, every fourth of them gzipped; existing files are
    kept."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = [text for text, _ in documentation("general")]
    vocabulary = sorted({word for text in sources for word in words(text)})
    number = done = 0
    while done < size:
        packed = number % 4 == 3
        path = folder / f"part-{number:03d}.jsonl{'.gz' if packed else ''}"
        target_bytes = min(FILE_BYTES, size - done)
        if not path.exists():
            draw = random.Random(number)
            with (
                atomic_write(path) as temporary,
                gzip.open(temporary, "wt", compresslevel=1) if packed else temporary.open("w") as file,
            ):
                written = 0
                while written < target_bytes:
                    text = draw.choice(sources).split(" ")
                    for index in range(len(text)):
                        if draw.random() < DRAWN:
                            text[index] = draw.choice(vocabulary)
                    line = json.dumps({"text": " ".join(text)}) + "\n"
                    file.write(line)
                    written += len(line)
        done += target_bytes
        number += 1


def run(folder: Path, kill_after: float | None = None) -> tuple[dict[str, int], float]:
    """Run `dvc repro` in `folder`; returns peak bytes of the process tree by step, and seconds. After `kill_after`
    seconds, the whole process tree is killed."""
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(folder),
        "DVC_SITE_CACHE_DIR": str(folder / ".cursus" / "dvc"),
    }
    begun = time.monotonic()
    log = folder / "repro.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "dvc", "repro", "pin@large", "card@large"],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        peaks: dict[str, int] = {}
        for used in sampled(process):
            if kill_after is not None and time.monotonic() - begun > kill_after:
                for one in tree(process.pid):
                    one.send_signal(signal.SIGKILL)
                process.wait()
                return peaks, time.monotonic() - begun
            step = _step(log)
            peaks[step] = max(peaks.get(step, 0), used)
    if process.returncode:
        sys.exit(log.read_text()[-3000:])
    return peaks, time.monotonic() - begun


def _step(log: Path) -> str:
    started = [line for line in log.read_text().splitlines() if line.startswith("Running stage ")]
    return started[-1].split("'")[1].partition("@")[0] if started else "dvc"


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file that the last steps wrote, except hidden files, which contain the checkout's path."""
    home = folder / "data" / "prepared" / "large"
    by_name = {}
    for file in sorted(home.rglob("*")):
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(home).parts):
            with file.open("rb") as opened:
                digest = sha256()
                while block := opened.read(2**20):
                    digest.update(block)
            by_name[file.relative_to(home).as_posix()] = digest.hexdigest()
    return by_name


def compare(known: Path, by_name: dict[str, str], disturbed: bool) -> None:
    """Save the digests of an undisturbed run, or compare those of a disturbed one with them."""
    if not disturbed:
        known.write_text(json.dumps(by_name, indent=1))
        print(f"{len(by_name)} files; their digests are in {known}")
    elif not known.exists():
        print("no undisturbed run to compare with: run it without --kills")
    else:
        before = json.loads(known.read_text())
        differing = sorted(name for name in before.keys() | by_name.keys() if before.get(name) != by_name.get(name))
        print(f"{len(by_name)} files, {len(differing)} differ from the undisturbed run {differing[:5]}")


if __name__ == "__main__":
    main()
