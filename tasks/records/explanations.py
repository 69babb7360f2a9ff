"""Why a claim was not reproduced: what a person has found out, from `docs/claims/explanations.yaml`.

    skip_thoughts.bag_of_words.topics:          # the record docs/claims/skip_thoughts.bag_of_words.topics.json
      because: budget
      measured: after 4 M tokens of the domain's text …

A claim of which it is only known that the interval was too wide needs no entry: the page says which effect the
measurement would have shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pipelines.errors import RecipeError
from pipelines.judging.certainty.significance import smallest_effect
from pipelines.judging.certainty.variance_components import CONFIDENCE, ContrastVariance
from pipelines.judging.claims import Verdict
from tasks.records.claim_power import size_of_effect
from tasks.records.notes import read_notes

FILE = "explanations.yaml"
"""Its name, in the folder of the records."""
Because: TypeAlias = Literal["power", "budget", "flaw", "claim"]
"""An effect of this size could not be shown; the models read too little text to have learnt what is compared; an error
of this package; the claim does not hold on these data or at this size."""
KEYS = ("because", "measured")
REPRODUCED: Verdict = "reproduced"
UNDECIDED: Verdict = "cannot tell at this scale"
COLUMNS = ("claim", "verdict", "shown four times in five", "why")
SECTION = """\
## Not reproduced, and why

*Shown four times in five*: the smallest effect beyond the required one that as many seeds, draws and examples show with
a power of 80 %, by the variances of this record. *Why*: **power**, the truth may be smaller than that; **budget**, the
models had read too little to have learnt what is compared; **flaw**, an error of this package; **claim**, it does not
hold on these data or at this size. What was measured of it is in `docs/claims/explanations.yaml`.
"""
POWER_ALONE = "**power**: the interval contains what is required"


def read_explanations(folder: Path) -> dict[str, str]:
    """Name of a record → the sentence that explains it, from the file in `folder`; empty where there is none.

    Raises RecipeError, which names file and key, for a file that does not have the form above.
    """
    path = folder / FILE
    notes = read_notes(path, "names of records to explanations")
    return {name: _explanation(path, name, one) for name, one in notes.items()}


def explanation_rows(
    records: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], explanations: Mapping[str, str]
) -> Iterator[list[str]]:
    """A row for each record that is not reproduced."""
    for name, record in records.items():
        if record["verdict"] == REPRODUCED:
            continue
        why = explanations.get(name) or (POWER_ALONE if record["verdict"] == UNDECIDED else "")
        yield [titles[name], record["verdict"], smallest_shown(record), why]


def unexplained(records: Mapping[str, Mapping[str, Any]], explanations: Mapping[str, str]) -> list[str]:
    """Records whose verdict needs an explanation and has none: those not reproduced, and those too near chance."""
    needed = {name for name, one in records.items() if one["verdict"] not in (REPRODUCED, UNDECIDED)}
    return sorted(needed - explanations.keys())


def smallest_shown(record: Mapping[str, Any]) -> str:
    """The smallest effect that a measurement shows four times in five: `2.6 points`, `1.05 times`, or `3.1`.

    Empty for figures that no seed and no example changes, and for records that kept no variances.
    """
    contrasts = [record["effect"]] if "effect" in record else record["contrasts"]
    kept = [one["variance"] for one in contrasts if one.get("variance")]
    if not kept or record.get("exact", False):
        return ""
    confidence = 1 - (1 - CONFIDENCE) / len(contrasts)
    smallest = max(smallest_effect(ContrastVariance(**one), confidence) for one in kept)
    ratio = record.get("ratio", False)
    return size_of_effect(math.exp(smallest) if ratio else smallest, ratio=ratio, share=record.get("share", True))


def _explanation(path: Path, name: str, written: object) -> str:
    if not isinstance(written, dict) or set(written) != set(KEYS):
        raise RecipeError(f"{path}: {name}: must have the keys {' and '.join(KEYS)}")
    because, measured = written["because"], written["measured"]
    if because not in get_args(Because):
        raise RecipeError(f"{path}: {name}.because: {because!r} is none of: {', '.join(get_args(Because))}")
    if not isinstance(measured, str) or not measured.strip():
        raise RecipeError(f"{path}: {name}.measured: must say what was measured")
    return f"**{because}**: {' '.join(measured.split())}"
