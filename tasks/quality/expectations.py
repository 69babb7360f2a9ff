"""Expectations of our own, for Great Expectations to judge tables of measures by.

A row of such a table stands for one document or for several that would be answered alike (`documents`), so counts are sums of
that column, not of rows. Importing this imports Great Expectations, which takes seconds: do it where it is needed.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import pandas as pd
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.core.expect_column_values_to_be_null import ExpectColumnValuesToBeNull
from great_expectations.expectations.core.expect_column_values_to_not_be_null import ExpectColumnValuesToNotBeNull
from great_expectations.expectations.expectation import BatchExpectation, ColumnMapExpectation
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.validator.metric_configuration import MetricConfiguration

from pipelines.corpora.evidence.drift import SIGNIFICANCE, drift
from pipelines.corpora.evidence.study import is_language

TABLE = "table.measures"
UNTOLD = "too little unlabelled text to train a tokenizer on"


class TableOfMeasures(TableMetricProvider):
    """The metric that the expectations below are answered from: the table of measures itself."""

    metric_name = TABLE

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls,
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> pd.DataFrame:
        frame, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
        return frame


class CountsDocuments(ColumnMapExpectation):
    """An expectation about every value of a column that counts documents where its parent counts rows."""

    def get_validation_dependencies(self, *args: Any, **kwargs: Any) -> Any:
        """Those of the parent, which rows fail, and for how many documents each row stands."""
        wanted = super().get_validation_dependencies(*args, **kwargs)
        counted = wanted.get_metric_configuration(f"{self.map_metric}.unexpected_count")
        assert counted is not None
        domain = dict(counted.metric_domain_kwargs)
        condition = f"{self.map_metric}.condition"
        wanted.set_metric_configuration(condition, MetricConfiguration(condition, domain, counted.metric_value_kwargs))
        domain.pop("column")
        wanted.set_metric_configuration(TABLE, MetricConfiguration(TABLE, domain, {}))
        return wanted

    def _validate(self, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        answer = super()._validate(metrics, *args, **kwargs)
        weights = metrics[TABLE]["documents"]
        failed = metrics[f"{self.map_metric}.condition"][0]
        documents = int(weights.sum())
        asked = int(weights.loc[failed.index].sum())
        unexpected = int(weights.loc[failed.index[failed]].sum())
        result = answer["result"]
        result |= {
            "element_count": documents,
            "unexpected_count": unexpected,
            "unexpected_percent": _percent(unexpected, asked),
        }
        if "missing_count" in result:
            result |= {
                "missing_count": documents - asked,
                "missing_percent": _percent(documents - asked, documents),
                "unexpected_percent_total": _percent(unexpected, documents),
                "unexpected_percent_nonmissing": _percent(unexpected, asked),
            }
        return answer


class ExpectMeasuresToBeBetween(CountsDocuments, ExpectColumnValuesToBeBetween):
    """A measure of every document lies in a range."""


class ExpectMeasuresToBeNull(CountsDocuments, ExpectColumnValuesToBeNull):
    """Of no document there is anything to say in this column."""


class ExpectFieldsToNotBeNull(CountsDocuments, ExpectColumnValuesToNotBeNull):
    """No document lacks this column."""


class ExpectNoLeakage(ExpectMeasuresToBeBetween):
    """No document holds so large a part of an evaluation text, as the overlap of their runs of words."""

    strict_max: bool = True
    words: int
    """Length of the runs of words."""
    against: str
    """The evaluation tables."""


class Aggregate(BatchExpectation):
    """An expectation about a table of measures as a whole."""

    metric_dependencies: ClassVar[tuple[str, ...]] = (TABLE,)

    def _validate(self, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        success, observed = self.answer(metrics[TABLE])
        return {"success": bool(success), "result": {"observed_value": observed}}

    @abstractmethod
    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Whether it is met, and what was observed in plain words."""


class ExpectTableToHoldDocuments(Aggregate):
    """There is at least one document."""

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """The number of documents."""
        documents = int(table["documents"].sum())
        return documents > 0, f"{documents:,} documents"


class ExpectLanguageShare(Aggregate):
    """At least a share of the characters of the sampled texts stands in texts told to be of the language."""

    language: str
    at_least: float
    success_keys: ClassVar[tuple[str, ...]] = ("language", "at_least")

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Met where no text of the sample is long enough to tell."""
        told = table[table["detected_language"].notna()]
        characters = told.groupby("detected_language")["characters"].sum().sort_values(ascending=False, kind="stable")
        if not len(told):
            return True, "no text is long enough to tell its language"
        share = (
            sum(many for found, many in characters.items() if is_language(str(found), self.language)) / characters.sum()
        )
        others = [f"{found} {many / characters.sum():.1%}" for found, many in characters.items()][:4]
        return share >= self.at_least, f"{share:.1%} {self.language} of {len(told):,} texts ({', '.join(others)})"


class ExpectNoDrift(Aggregate):
    """The shares of the kinds in a column are about those of the last accepted version of the dataset."""

    column: str
    at_most: float
    earlier: dict[str, int] | None = None
    """Kind → documents of the last accepted version; None where there is none."""
    success_keys: ClassVar[tuple[str, ...]] = ("column", "at_most", "earlier")

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Met where there is no earlier version."""
        if self.earlier is None:
            return True, "no earlier version"
        kinds = table[self.column].astype(str).where(table[self.column].notna())
        now = {str(kind): int(many) for kind, many in table["documents"].groupby(kinds).sum().items()}
        found = drift(self.earlier, now)
        return not found.exceeds(self.at_most), f"distance {found.distance:.3f}, p = {found.p_value:.2g}"


class ExpectUnknownTokenShare(Aggregate):
    """A tokenizer knows almost all of the sampled texts."""

    at_most: float
    success_keys: ClassVar[tuple[str, ...]] = ("at_most",)

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Met where there was too little text to train on, and where so few tokens say little (binomial)."""
        from scipy.stats import binom

        tokens, unknown = int(table["token_count"].sum()), int(table["unknown_tokens"].sum())
        if not tokens:
            return True, UNTOLD
        chance = float(binom.sf(unknown - 1, tokens, self.at_most))
        return chance >= SIGNIFICANCE, f"{unknown:,} of {tokens:,} tokens ({unknown / max(1, tokens):.3%})"


class ExpectFertility(Aggregate):
    """A tokenizer needs few tokens for a word."""

    at_most: float
    unit: str
    success_keys: ClassVar[tuple[str, ...]] = ("at_most", "unit")

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Met where there was too little text to train on."""
        if not table["token_count"].sum():
            return True, UNTOLD
        fertility = table["token_count"].sum() / max(1, table["word_count"].sum())
        return bool(fertility <= self.at_most), f"{fertility:.3f} tokens a {self.unit}"


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
