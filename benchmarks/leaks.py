"""Compare the leaks detected in a folder of labelled sets and corpora with those listed in its README.

    python -m benchmarks.leaks --folder …/datasets             # copies within each set; seconds
    python -m benchmarks.leaks --folder …/datasets --corpora   # and evaluation texts contained in the corpora; minutes

The folder has `MANIFEST.json`, a folder for each kind of set, and a README with the tables "Checks" and "Overlap of
evaluation texts with the corpora". Differences are printed with both counts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.corpora.duplicates.overlap import OverlapIndex
from pipelines.corpora.duplicates.published import ExampleKeys, published_leaks
from pipelines.corpora.duplicates.shingles import Letters, Shingle, batches

SPLITS = ("all", "train", "dev", "dev_out_of_domain", "trial", "test")
EVALUATION = ("dev", "dev_out_of_domain", "trial", "test")
LENGTH = {"en": Shingle("words", 13), "zh": Shingle("letters", 20)}
AS_THEY_ARE = ("knowledge_graph", "lexicon")
"""Kinds of set whose lines are compared unchanged."""
Example = tuple[str, str, str]
"""The whole input of an example, its answer, and the text that is searched for in corpora."""


def main() -> None:
    """Count leaks, compare them with the README, and print differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--corpora", action="store_true")
    options = parser.parse_args()
    readme = (options.folder / "README.md").read_text(encoding="utf-8")
    languages = dict(re.findall(r"^\| (\w+) \| [^|]+ \| (en|zh) \|", readme, re.M))
    sets = {
        path.parent.name: path.parent for path in sorted(options.folder.glob("*/*/*.*")) if path.parts[-3] != "corpora"
    }
    compare_inside(sets, readme)
    compare_copies(options.folder, sets, readme)
    if options.corpora:
        compare_with_corpora(options.folder, sets, languages, readme)


def compare_inside(sets: dict[str, Path], readme: str) -> None:
    """Compare duplicates within splits, copies across splits, and texts with two labels."""
    equal = 0
    rows = _table(readme, "## Checks")
    for name, repeats, across, two, *_ in rows:
        if name not in sets:
            continue
        keys: list[bytes] = []
        answers: list[str] = []
        parts: list[str] = []
        for split in SPLITS:
            of_split = list(examples(sets[name], split))
            if sets[name].parent.name in AS_THEY_ARE:
                keys += [blake2b(text.encode(), digest_size=16).digest() for text, *_ in of_split]
            else:
                keys += [
                    key.tobytes()
                    for batch in batches(one[0] for one in of_split)
                    for key in Letters.of(batch).text_keys()
                ]
            answers += [answer for _, answer, _ in of_split]
            parts += [split] * len(of_split)
        published = np.frombuffer(b"".join(keys), np.uint64).reshape(-1, 2)
        leaks = published_leaks(ExampleKeys.of(published, answers, parts, SPLITS))
        listed: dict[str, Any] = {"repeats": _counts(repeats), "across": _counts(across)}
        if two.strip():
            listed["two_answers"] = int(two)
        ours = {key: leaks[key] for key in listed}
        equal += ours == listed
        if ours != listed:
            print(f"{name}: found {ours}, listed {listed}")
    print(f"copies inside labelled sets: {equal} of {sum(row[0] in sets for row in rows)} sets as listed")


def compare_copies(folder: Path, sets: dict[str, Path], readme: str) -> None:
    """Compare the documents that the README lists as identical to an evaluation text."""
    listed = {location: int(count) for count, location in re.findall(r": (\d+) equal to (\w+/\w+)", readme)}
    documents = [one for path in sorted(folder.glob("corpora/*/same_as_eval*")) for one in _lines(path)]
    keys = [
        key.tobytes() for batch in batches(one["text"] for one in documents) for key in Letters.of(batch).text_keys()
    ]
    for location, count in listed.items():  # a document is listed with the first split that has it
        shown = [one[0] for one in examples(sets[location.split("/")[0]], location.split("/")[1])]
        known = {key.tobytes() for batch in batches(shown) for key in Letters.of(batch).text_keys()}
        print(f"documents the same as a text of {location}: found {sum(key in known for key in keys)}, listed {count}")
        keys = [key for key in keys if key not in known]


def compare_with_corpora(folder: Path, sets: dict[str, Path], languages: dict[str, str], readme: str) -> None:
    """Compare the number of distinct evaluation texts that share a run with a corpus, and of those with most runs in
    one."""
    listed = {
        (row[0], row[1]): (*map(int, row[2:5]), row[5]) for row in _table(readme, "### Overlap of evaluation texts")
    }
    quiet = re.search(r"^No hit: (.*)\.$", readme, re.M)
    splits = [*listed, *(tuple(one.split("/")) for one in (quiet.group(1) if quiet else "").split(", "))]
    evaluated: dict[str, list[tuple[str, str, str]]] = {"en": [], "zh": []}
    for name, split in splits:
        language = languages[name]
        shown = [shown for *_, shown in examples(sets[name], split)]
        keys = [key.tobytes() for batch in batches(shown) for key in Letters.of(batch).text_keys()]
        evaluated[language] += [(name, split, text) for text in dict(zip(keys, shown, strict=True)).values()]
    equal = 0
    for language, texts in evaluated.items():
        index = OverlapIndex([text for *_, text in texts], LENGTH[language].length, LENGTH[language].unit)
        hits: dict[str, np.ndarray[Any, Any]] = {}
        for corpus in sorted((folder / "corpora").glob(f"{language}_*")):
            seen = np.zeros(len(index.grams), np.bool_)
            documents = (one["text"] for path in sorted(corpus.glob("[tv]*.gz")) for one in _lines(path))
            for batch in batches(documents):
                hashes, _ = Letters.of(batch).shingles(LENGTH[language])
                seen[index.matches(hashes)[1]] = True
            hits[corpus.name] = index.covered(seen) / np.maximum(index.sizes, 1)
        share = np.stack(list(hits.values()))
        for name, split in splits:
            if languages[name] != language:
                continue
            members = np.array([one[:2] == (name, split) for one in texts])
            long = members & (index.sizes > 0)
            whom = {corpus: int((each[long] > 0).sum()) for corpus, each in hits.items()}
            summary = ", ".join(
                f"{corpus} {count}" for corpus, count in sorted(whom.items(), key=lambda one: -one[1]) if count
            )
            ours = (
                int(long.sum()),
                int((share[:, long] > 0).any(0).sum()),
                int((share[:, long] >= 0.8).any(0).sum()),
                summary,
            )
            expected = listed.get((name, split), (ours[0], 0, 0, ""))
            same = ours[:3] == expected[:3] and _pairs(summary) == _pairs(str(expected[3]))
            equal += same
            if not same:
                print(f"{name}/{split}: found {ours}, listed {expected}")
    print(f"evaluation texts in the corpora: {equal} of {len(splits)} splits as listed")


def examples(folder: Path, split: str) -> Iterator[Example]:
    """The examples of one split of a set."""
    for path in sorted(folder.glob(f"{split}.*")):
        if ".tsv" in path.name:
            for line in filter(None, _text(path).split("\n")):
                yield line, "", line.split("\t")[0]
        elif ".conllu" in path.name:
            for block in _text(path).split("\n\n"):
                words = re.findall(r"^\d+\t([^\t]+)", block, re.M)
                text = re.search(r"^# text = (.*)$", block, re.M)
                if words:
                    yield text.group(1) if text else " ".join(words), "", text.group(1) if text else " ".join(words)
        elif ".jsonl" in path.name:
            for one in _lines(path):
                yield _example(one)
        else:
            for article in json.loads(_text(path))["data"]:
                for passage in article["paragraphs"]:
                    for one in passage["qas"]:
                        answers = sorted({answer["text"] for answer in one["answers"]})
                        yield f"{passage['context']}\n{one['question']}", repr(answers), passage["context"]


def _example(one: dict[str, Any]) -> Example:
    if "text_a" in one:
        return f"{one['text_a']}\n{one['text_b']}", repr(one["label"]), one["text_a"]
    if "tokens" in one:
        return " ".join(one["tokens"]), repr(one["tags"]), " ".join(one["tokens"])
    if "choices" in one:
        context = one["context"] if isinstance(one["context"], str) else "\n".join(one["context"])
        return "\n".join([context, one["question"], *one["choices"]]), repr(one["answer"]), context
    if "table_id" in one:
        return f"{one['question']}\n{one['table_id']}", repr(one["answers"]), one["question"]
    text = one.get("text") or json.dumps(one, ensure_ascii=False, sort_keys=True)
    spans = "".join(f"\n{one[key]}" for key in ("span1", "span2", "span2_index") if key in one)
    return text + spans, repr(one.get("label")), text


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in _text(path).split("\n") if line)


def _table(readme: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading."""
    after = readme[readme.index(heading) :]
    rows = re.search(r"^\| ---.*\n((?:\|.*\n)+)", after, re.M)
    return (
        [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows.group(1).splitlines()]
        if rows
        else []
    )


def _counts(cell: str) -> dict[str, int]:
    return {} if cell == "0" else {name: int(count) for name, count in re.findall(r"(\S+) (\d+)", cell)}


def _pairs(cell: str) -> set[str]:
    return set(cell.split(", ")) - {""}


if __name__ == "__main__":
    main()
