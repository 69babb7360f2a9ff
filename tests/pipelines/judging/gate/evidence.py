"""Evidence as the judging step and the store would give it, good in every respect but those that a test names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.judging.gate.evidence import Evidence, LeakageEvidence, LineageEvidence

CLEAN = LeakageEvidence(dataset="docs", left_in={}, removed=3, leaked=0, tested=200, trained_on_this=True)
WHOLE = LineageEvidence(
    steps=4, flaws=(), commits={"general": "a" * 40, "classify@0": "a" * 40}, identical=None, reproduction=""
)


def estimate(mean: float, half: float = 0.03) -> dict[str, Any]:
    return {"mean": mean, "low": mean - half, "high": mean + half, "per_seed": [mean]}


def scores(low: float, high: float, own: float = 0.8) -> dict[str, Any]:
    """A record of scores whose candidate differs from the champion by [low, high]."""
    verdict = "better" if low > 0 else "worse" if high < 0 else "cannot tell"
    by = {"difference": (low + high) / 2, "low": low, "high": high, "verdict": verdict}
    stages = [{"stage": name, "seeds": [0], "macro_f1": estimate(own)} for name in ("champion", "candidate")]
    return {
        "metrics": ["macro_f1"],
        "stages": stages,
        "ladder": [{"from": "champion", "to": "candidate", "macro_f1": by}],
    }


def served(milliseconds: float, times: float, megabytes: float = 10.0, champion: float = 10.0) -> dict[str, Any]:
    """A record of two served models: the candidate's median, ± 10 %, and its quotient by the champion's."""
    call = {
        "median": milliseconds,
        "low": 0.9 * milliseconds,
        "high": 1.1 * milliseconds,
        "p90": milliseconds,
        "calls": 9,
    }
    stages = {"champion": champion, "candidate": megabytes}
    return {
        "served": [
            {"stage": name, "bytes": size * 1e6, "latency_ms": {"1": call, "32": call}} for name, size in stages.items()
        ],
        "times": {size: {"quotient": times, "low": 0.9 * times, "high": 1.1 * times} for size in ("1", "32")},
    }


def attacked(score: float, loss: float) -> dict[str, Any]:
    """A record of two attacks, the second the worse, with ± 0.03 about each figure."""
    by = {"difference": -loss, "low": -loss - 0.03, "high": -loss + 0.03, "verdict": "worse"}
    none = {"difference": 0.0, "low": 0.0, "high": 0.0, "verdict": "cannot tell"}
    stage = {
        "stage": "candidate", "seeds": [0], "clean": {"macro_f1": estimate(score + loss)},
        "attacked": {"case": {"macro_f1": estimate(score + loss)}, "typos": {"macro_f1": estimate(score)}},
        "loss": {"case": {"macro_f1": none}, "typos": {"macro_f1": by}},
    }  # fmt: skip
    return {"metric": "macro_f1", "metrics": ["macro_f1"], "attacks": ["case", "typos"], "stages": [stage], "shown": []}


def evidence(
    *sections: Mapping[str, Any],
    champion: bool = True,
    leakage: LeakageEvidence = CLEAN,
    lineage: LineageEvidence = WHOLE,
) -> Evidence:
    return Evidence(("macro_f1", "accuracy"), 200, champion, sections, leakage, lineage)
