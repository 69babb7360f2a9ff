"""Names and formats of metrics: shares in per cent, translation scores out of a hundred, other values unscaled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pipelines.messages.translation import message, template, translatable
from pipelines.reports.elements.axes import percent, points

NAMES = {
    "accuracy": translatable("accuracy"),
    "macro_f1": translatable("macro-F1"),
    "micro_f1": translatable("micro-F1"),
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
    "f1": "F1",
    "mcc": translatable("Matthews correlation"),
    "spearman": translatable("Spearman correlation"),
    "pearson": translatable("Pearson correlation"),
    "chrf": "chrF2",
    "bleu": "BLEU",
    "exact_match": translatable("exact match"),
    "precision": translatable("precision"),
    "recall": translatable("recall"),
    "reciprocal_rank": translatable("mean reciprocal rank"),
    "legal": translatable("legal tags"),
    "uuas": "UUAS",
    "distance_spearman": translatable("Spearman correlation of distances"),
    "depth_spearman": translatable("Spearman correlation of depths"),
    "loss": translatable("nats a token"),
    "perplexity": translatable("perplexity"),
    "pseudo_perplexity": translatable("pseudo-perplexity"),
}
"""Display names, where they are not the metric's key with spaces."""
PER_CENT = re.compile(r"(?<=\d) %")
UNSCALED = frozenset({"mcc", "spearman", "pearson", "distance_spearman", "depth_spearman", "loss"})
OUT_OF_A_HUNDRED = frozenset({"chrf", "bleu", "rouge1", "rouge2", "rouge_l"})


def metric_name(metric: str) -> str:
    """`exact_match` → `exact match`, in the reader's language."""
    return template(NAMES.get(metric, metric.replace("_", " ")))


def listing(parts: Iterable[str]) -> str:
    """`a, b, c` with the separator of the current language."""
    return message(", ").join(parts)


def sequence(parts: Iterable[str]) -> str:
    """`a; b; c` with the separator of the current language."""
    return message("; ").join(parts)


def plain(name: str) -> str:
    """`add_noise` → `add noise`: the name of a component, in the current language where that has one."""
    return template(name.replace("_", " "))


def capital(words: str) -> str:
    """`words` with its first letter in upper case, the rest unchanged."""
    return words[:1].upper() + words[1:]


def score(value: float, metric: str) -> str:
    """0.6132 → `61.3 %`, `61.3` out of a hundred, or `0.613` of a correlation."""
    if metric in UNSCALED:
        return f"{value:.3f}".replace("-", "−")
    return f"{100 * value:.1f}" if metric in OUT_OF_A_HUNDRED else percent(value)


def unbroken(sentence: str) -> str:
    """`sentence` with spaces before per cent signs at which no line ends."""
    return PER_CENT.sub("\u00a0%", sentence)


def tick(value: float, metric: str) -> str:
    """A score as the label of a tick, without trailing zeros."""
    if metric in UNSCALED:
        return f"{value:g}".replace("-", "−")
    return f"{100 * value:g}" if metric in OUT_OF_A_HUNDRED else f"{100 * value:g} %"


def span(low: float, high: float, metric: str) -> str:
    """The ends of an interval: `58.2–64.0`, or `0.582 to 0.640` of a correlation."""
    if metric in UNSCALED:
        return message("{low} to {high}", low=score(low, metric), high=score(high, metric))
    return f"{100 * low:.1f}–{100 * high:.1f}"


def estimate_text(name: str, mean: float, low: float, high: float, metric: str) -> str:
    """`int8: 61.3 %, interval 58.2–64.0`, shown where the pointer rests."""
    return message(
        "{name}: {score}, interval {interval}", name=name, score=score(mean, metric), interval=span(low, high, metric)
    )


def difference(value: float, metric: str) -> str:
    """`+2.1`, in points or out of a hundred; `+0.021` of a correlation."""
    return f"{value:+.3f}".replace("-", "−") if metric in UNSCALED else points(value)


def p_value(value: float) -> str:
    """`0.147`, and `< 0.001`, unbroken, of what would be rounded to nothing."""
    return "<\u00a00.001" if value < 0.001 else f"{value:.3f}"


def measured_in(metric: str) -> str:
    """Unit of a difference: `points of accuracy`, `BLEU`, `Spearman correlation`."""
    whole = metric in UNSCALED or metric in OUT_OF_A_HUNDRED
    return metric_name(metric) if whole else message("points of {metric}", metric=metric_name(metric))


def change(effect: Mapping[str, float], metric: str, verdict: str) -> str:
    """`+2.1 points of accuracy [+0.3, +4.0]: pays`."""
    sentence = (
        "{value} {metric} [{low}, {high}]: {verdict}"
        if metric in UNSCALED or metric in OUT_OF_A_HUNDRED
        else "{value} points of {metric} [{low}, {high}]: {verdict}"
    )
    return message(
        sentence,
        value=difference(effect["difference"], metric),
        metric=metric_name(metric),
        low=difference(effect["low"], metric),
        high=difference(effect["high"], metric),
        verdict=message(verdict),
    )
