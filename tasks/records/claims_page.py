"""The page of measured claims, docs/claims.md, as made of their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.reports.elements.wording import metric_name
from pipelines.reports.score_tables import BASELINE_NAMES
from tasks.records.claim_conditions import COLUMNS as CONDITION_COLUMNS
from tasks.records.claim_conditions import CONDITIONS, condition_rows
from tasks.records.claim_significance import adjusted_p_values, adjusted_text
from tasks.records.explanations import COLUMNS as EXPLANATION_COLUMNS
from tasks.records.explanations import REPRODUCED, SECTION, explanation_rows
from tasks.records.standings import Standing

HEADER = """\
# Claims

Written by `cursus claim` from the records in `docs/claims/`: do not edit.

The effect is the system's score minus the baseline's on the same test examples; in brackets its 95 % interval, over
seeds and examples, and over draws of pre-training where there are several. What both sides had in common, and what not,
is [below](#how-each-was-measured).
*Reproduced* means that the whole interval is above the claimed minimum, *not reproduced* that it is below, *too near
chance* that no side is surely above the better answer that reads no text: the most frequent class of the training
table, or of the test table. TF-IDF is shown beside them, and decides nothing. A verdict is that of one claim alone;
*p (Holm)* is corrected for all claims of this page together, and says where a verdict is not certain among so many.
Each that was not reproduced is [explained](#not-reproduced-and-why).
"""
OTHER_FORMS = """\
## Other forms and figures

Orders, quotients, trends, transfers and differences of differences, and figures that are no metric of a task. Effects
count as better where they are above zero, also of figures of which less is better (↓); a quotient is how many times
better. The intervals of one claim contain all its effects together in 95 of 100 measurements. An effect without an
interval follows from the recipe alone.
"""


FORM_OF_OLD = "greater"
"""Form of the records that were written before there were others."""
COMMON_COLUMNS = ("effect [95 %]", "verdict", "p (Holm)", "published", "seeds", "cost")
NO_NETWORK = "without a network"
PAIR_COLUMNS = ("claim", "data", "metric", NO_NETWORK, "baseline", "system", *COMMON_COLUMNS)
OTHER_COLUMNS = ("claim", "data", "figure", NO_NETWORK, "form", "measured [95 %]", *COMMON_COLUMNS)
METRIC_COLUMNS = ("claim", "metric", "baseline", "system", "effect [95 %]")


def render_claims(
    named: Mapping[str, Mapping[str, Any]],
    standings: Mapping[str, Standing],
    explanations: Mapping[str, str],
    published: str,
) -> str:
    """The text of the page, of records by their names; `standings` and `explanations` are by the same names,
    `published` says what is known of the published figures."""
    records = [*named.values()]
    adjusted = adjusted_p_values(records)
    tested = list(zip(records, map(adjusted_text, records, adjusted), strict=True))
    pairs = [record for record in records if "effect" in record]
    others = [record for record in records if "contrasts" in record]
    rows = (_pair(record, text) for record, text in tested if "effect" in record)
    lines = [f"{HEADER}{published}\n", *summary(records), *_table(PAIR_COLUMNS, rows), *_images(pairs)]
    if others:
        lines += [
            "",
            OTHER_FORMS,
            *_table(OTHER_COLUMNS, (_other(one, text) for one, text in tested if "contrasts" in one)),
        ]
        lines += _images([record for record in others if form_of(record) not in set(map(form_of, pairs))])
    titles = {name: title(record) for name, record in named.items()}
    if why := [*explanation_rows(named, titles, explanations)]:
        lines += ["", SECTION, *_table(EXPLANATION_COLUMNS, why)]
    conditions = condition_rows(records, [*titles.values()], [standings[name] for name in named])
    lines += ["", CONDITIONS, *_table(CONDITION_COLUMNS, conditions)]
    metrics = (row for record in pairs for row in _other_metrics(record))
    lines += ["", "## Other metrics", "", *_table(METRIC_COLUMNS, metrics)]
    return "\n".join(lines) + "\n"


def summary(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many claims were measured, with which verdicts: one sentence, and an empty line; nothing without records."""
    if not records:
        return []
    recipes = {record["recipe"] for record in records}
    verdicts = Counter(str(record["verdict"]) for record in records).most_common()
    counted = ", ".join(f"{number} {verdict}" for verdict, number in verdicts)
    reproduced = {record["recipe"] for record in records if record["verdict"] == REPRODUCED}
    return [
        f"**Claims measured: {len(records)}, of {len(recipes)} recipes: {counted}. "
        f"Recipes of which at least one claim is reproduced: {len(reproduced)}.**",
        "",
    ]


def title(record: Mapping[str, Any]) -> str:
    """Recipe, claim and variants: `electra · electra_against_bert`."""
    return " · ".join((record["recipe"], record["claim"], *record.get("variants", ())))


def form_of(record: Mapping[str, Any]) -> str:
    """Name of the form of a record's claim."""
    return str(record.get("form", {}).get("name", FORM_OF_OLD))


def number(value: float, record: Mapping[str, Any]) -> str:
    """A figure of a record: `0.654`, `12.34`, or `1,234,567` of what is counted."""
    if record["share"]:
        return f"{value:.3f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def effect(contrast: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """An effect with its interval: `+0.012 [+0.003, +0.021]`, or `4.02 times [3.9, 4.2]`."""

    def written(value: float) -> str:
        if record["ratio"]:
            return f"{value:.3g}"
        return ("+" if value >= 0 else "") + number(value, record)

    times = " times" if record["ratio"] else ""
    interval = "" if record["exact"] else f" [{written(contrast['low'])}, {written(contrast['high'])}]"
    return written(contrast["effect"]) + times + interval


def effects(record: Mapping[str, Any]) -> str:
    """All effects of a record, each with its label where there are several."""
    contrasts = record["contrasts"]
    if len(contrasts) == 1:
        (only,) = contrasts
        return effect(only, record) + _required(only, record)
    return "; ".join(f"{one['label']} {effect(one, record)}" for one in contrasts)


def seeds_text(record: Mapping[str, Any]) -> str:
    """Number of seeds, and of draws of pre-training where there are several: `5 × 3 draws`."""
    draws = record.get("pretraining_draws", 1)
    return f"{record['seeds']}" + (f" × {draws} draws" if draws > 1 else "")


def baselines_text(record: Mapping[str, Any]) -> str:
    """The figures of the baselines without a network; empty where there are none for the data, or none was kept."""
    several = "several" in record["data"]
    return ", ".join(
        f"{BASELINE_NAMES.get(one['name'], one['name'])}{' on ' + one['judged'] if several else ''} "
        f"{one['figure']['mean']:.3f}"
        for one in record.get("baselines", ())
    )


def dataset_names(record: Mapping[str, Any]) -> str:
    """The dataset of a record, or all of them."""
    return ", ".join(one["dataset"] for one in record["data"].get("several", [record["data"]]))


def figure_name(record: Mapping[str, Any]) -> str:
    """The figure, marked where less of it is better."""
    return metric_name(record["metric"]) + (" ↓" if record["lower"] else "")


def _required(contrast: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    neutral = 1.0 if record["ratio"] else 0.0
    if contrast["at_least"] == neutral:
        return ""
    least = f"{contrast['at_least']:.3g}" if record["ratio"] else f"{contrast['at_least']:+.3f}"
    return f" (required: {'at least' if record['ratio'] else 'above'} {least})"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in rows]
    return ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|", *written]


def _images(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The drawing of each form of `records`."""
    return [
        line
        for form in sorted(set(map(form_of, records)))
        for line in ("", f"![effects with intervals: {form.replace('_', ' ')}](claims/{form}.svg)")
    ]


def _title(record: Mapping[str, Any]) -> str:
    return f"**{title(record)}**: {record['says']} ({record['paper']})"


def _cost(record: Mapping[str, Any]) -> str:
    return f"{record['cost']['seconds'] / 60:.0f} min, {record['cost']['models']} models"


def _examples(record: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{one['dataset']}, {one['examples']['train']} train, {one['examples']['test']} test"
        for one in record["data"].get("several", [record["data"]])
    )


def _pair(record: Mapping[str, Any], adjusted: str) -> list[str]:
    metric, measured = record["metric"], record["effect"]
    required = f" (required: above {record['at_least']:+.3f})" if record["at_least"] else ""
    return [
        _title(record),
        _examples(record),
        metric,
        baselines_text(record),
        f"{record['baseline']['stage']} {record['baseline'][metric]['mean']:.3f}",
        f"{record['system']['stage']} {record['system'][metric]['mean']:.3f}",
        f"{measured['difference']:+.3f} [{measured['low']:+.3f}, {measured['high']:+.3f}]{required}",
        f"**{record['verdict']}**",
        adjusted,
        record["published"],
        seeds_text(record),
        _cost(record),
    ]


def _other(record: Mapping[str, Any], adjusted: str) -> list[str]:
    several = "several" in record["data"]
    return [
        _title(record),
        _examples(record),
        figure_name(record),
        baselines_text(record),
        record["form"]["name"].replace("_", " "),
        "; ".join(_side(side, record, several) for side in record["sides"]),
        effects(record),
        f"**{record['verdict']}**",
        adjusted,
        record["published"],
        seeds_text(record),
        _cost(record),
    ]


def _side(side: Mapping[str, Any], record: Mapping[str, Any], several: bool) -> str:
    figure = side["figure"]
    of = f" on {side['judged']}" if several else ""
    interval = "" if record["exact"] else f" [{number(figure['low'], record)}, {number(figure['high'], record)}]"
    return f"{side['stage']}{of} {number(figure['mean'], record)}{interval}"


def _other_metrics(record: Mapping[str, Any]) -> Iterator[list[str]]:
    for metric, measured in record["other_metrics"].items():
        yield [
            title(record),
            metric,
            f"{record['baseline'][metric]['mean']:.3f}",
            f"{record['system'][metric]['mean']:.3f}",
            f"{measured['difference']:+.3f} [{measured['low']:+.3f}, {measured['high']:+.3f}]",
        ]
