"""Names and formats of metrics: shares in per cent, translation scores out of a hundred, other values unscaled."""

from __future__ import annotations

from pipelines.reports.elements.axes import percent, points

NAMES = {
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
    "f1": "F1",
    "mcc": "Matthews correlation",
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
    "chrf": "chrF2",
    "bleu": "BLEU",
    "legal": "legal tags",
    "uuas": "UUAS",
    "distance_spearman": "Spearman correlation of distances",
    "depth_spearman": "Spearman correlation of depths",
    "loss": "nats a token",
}
"""Display names, where they are not the metric's key with spaces."""
UNSCALED = frozenset({"mcc", "spearman", "pearson", "distance_spearman", "depth_spearman", "loss"})
OUT_OF_A_HUNDRED = frozenset({"chrf", "bleu", "rouge1", "rouge2", "rouge_l"})


def metric_name(metric: str) -> str:
    """`exact_match` → `exact match`."""
    return NAMES.get(metric, metric.replace("_", " "))


def capital(words: str) -> str:
    """`words` with its first letter in upper case, the rest unchanged."""
    return words[:1].upper() + words[1:]


def score(value: float, metric: str) -> str:
    """0.6132 → `61.3 %`, `61.3` out of a hundred, or `0.613` of a correlation."""
    if metric in UNSCALED:
        return f"{value:.3f}".replace("-", "−")
    return f"{100 * value:.1f}" if metric in OUT_OF_A_HUNDRED else percent(value)


def tick(value: float, metric: str) -> str:
    """A score as the label of a tick, without trailing zeros."""
    if metric in UNSCALED:
        return f"{value:g}".replace("-", "−")
    return f"{100 * value:g}" if metric in OUT_OF_A_HUNDRED else f"{100 * value:g} %"


def span(low: float, high: float, metric: str) -> str:
    """The ends of an interval: `58.2–64.0`, or `0.582 to 0.640` of a correlation."""
    if metric in UNSCALED:
        return f"{score(low, metric)} to {score(high, metric)}"
    return f"{100 * low:.1f}–{100 * high:.1f}"


def difference(value: float, metric: str) -> str:
    """`+2.1`, in points or out of a hundred; `+0.021` of a correlation."""
    return f"{value:+.3f}".replace("-", "−") if metric in UNSCALED else points(value)


def p_value(value: float) -> str:
    """`0.147`, and `< 0.001`, unbroken, of what would be rounded to nothing."""
    return "<\u00a00.001" if value < 0.001 else f"{value:.3f}"


def measured_in(metric: str) -> str:
    """Unit of a difference: `points of accuracy`, `BLEU`, `Spearman correlation`."""
    whole = metric in UNSCALED or metric in OUT_OF_A_HUNDRED
    return metric_name(metric) if whole else f"points of {metric_name(metric)}"
