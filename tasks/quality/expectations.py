"""Custom expectations of Great Expectations for tables of measures.

A row of such a table represents one document, or several with equal results (`documents`), so counts are sums of that
column, not of rows. Importing this module imports Great Expectations, which takes seconds: import it where it is
needed.
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
TOO_LITTLE_TEXT = "too little unlabelled text to train a tokenizer on"


class TableOfMeasures(TableMetricProvider):
    """The metric that the expectations below are computed from: the table of measures itself."""

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
    """An expectation about every value of a column, which counts documents where its parent counts rows."""

    def get_validation_dependencies(self, *args: Any, **kwargs: Any) -> Any:
        """The parent's dependencies, the rows that fail, and the number of documents of each row."""
        dependencies = super().get_validation_dependencies(*args, **kwargs)
        counted = dependencies.get_metric_configuration(f"{self.map_metric}.unexpected_count")
        assert counted is not None
        domain = dict(counted.metric_domain_kwargs)
        condition = f"{self.map_metric}.condition"
        dependencies.set_metric_configuration(
            condition, MetricConfiguration(condition, domain, counted.metric_value_kwargs)
        )
        domain.pop("column")
        dependencies.set_metric_configuration(TABLE, MetricConfiguration(TABLE, domain, {}))
        return dependencies

    def _validate(self, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        answer = super()._validate(metrics, *args, **kwargs)
        weights = metrics[TABLE]["documents"]
        failed = metrics[f"{self.map_metric}.condition"][0]
        documents = int(weights.sum())
        examined = int(weights.loc[failed.index].sum())
        unexpected = int(weights.loc[failed.index[failed]].sum())
        result = answer["result"]
        result |= {
            "element_count": documents,
            "unexpected_count": unexpected,
            "unexpected_percent": _percent(unexpected, examined),
        }
        if "missing_count" in result:
            result |= {
                "missing_count": documents - examined,
                "missing_percent": _percent(documents - examined, documents),
                "unexpected_percent_total": _percent(unexpected, documents),
                "unexpected_percent_nonmissing": _percent(unexpected, examined),
            }
        return answer


class ExpectMeasuresToBeBetween(CountsDocuments, ExpectColumnValuesToBeBetween):
    """A measure of every document lies in a range."""


class ExpectMeasuresToBeNull(CountsDocuments, ExpectColumnValuesToBeNull):
    """The column is empty for every document."""


class ExpectFieldsToNotBeNull(CountsDocuments, ExpectColumnValuesToNotBeNull):
    """The column has a value for every document."""


class ExpectNoLeakage(ExpectMeasuresToBeBetween):
    """No document overlaps an evaluation text by the limit or more, measured as the overlap of their word n-grams."""

    strict_max: bool = True
    words: int
    """Length of the n-grams in words."""
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
        """Whether the expectation is met, and the observed value in plain words."""


class ExpectTableToHoldDocuments(Aggregate):
    """There is at least one document."""

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Met when the table has a document; observes their number."""
        documents = int(table["documents"].sum())
        return documents > 0, f"{documents:,} documents"


class ExpectLanguageShare(Aggregate):
    """At least a share of the characters of the sampled texts is in texts identified as the language."""

    language: str
    at_least: float
    success_keys: ClassVar[tuple[str, ...]] = ("language", "at_least")

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Also met when no text of the sample is long enough to identify its language."""
        identified = table[table["detected_language"].notna()]
        characters = (
            identified.groupby("detected_language")["characters"].sum().sort_values(ascending=False, kind="stable")
        )
        if not len(identified):
            return True, "no text is long enough to identify its language"
        share = (
            sum(many for language, many in characters.items() if is_language(str(language), self.language))
            / characters.sum()
        )
        others = [f"{language} {many / characters.sum():.1%}" for language, many in characters.items()][:4]
        return share >= self.at_least, f"{share:.1%} {self.language} of {len(identified):,} texts ({', '.join(others)})"


class ExpectNoDrift(Aggregate):
    """The distribution of the kinds in a column is close to that of the last accepted version of the dataset."""

    column: str
    at_most: float
    earlier: dict[str, int] | None = None
    """Kind → documents of the last accepted version; None without one."""
    success_keys: ClassVar[tuple[str, ...]] = ("column", "at_most", "earlier")

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Also met without an earlier version."""
        if self.earlier is None:
            return True, "no earlier version"
        kinds = table[self.column].astype(str).where(table[self.column].notna())
        now = {str(kind): int(many) for kind, many in table["documents"].groupby(kinds).sum().items()}
        measured = drift(self.earlier, now)
        return not measured.exceeds(self.at_most), f"distance {measured.distance:.3f}, p = {measured.p_value:.2g}"


class ExpectUnknownTokenShare(Aggregate):
    """At most a share of the tokens of the sampled texts is unknown to a tokenizer."""

    at_most: float
    success_keys: ClassVar[tuple[str, ...]] = ("at_most",)

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Also met with too little text to train on, and when the excess is not significant (binomial test)."""
        from scipy.stats import binom

        tokens, unknown = int(table["token_count"].sum()), int(table["unknown_tokens"].sum())
        if not tokens:
            return True, TOO_LITTLE_TEXT
        chance = float(binom.sf(unknown - 1, tokens, self.at_most))
        return chance >= SIGNIFICANCE, f"{unknown:,} of {tokens:,} tokens ({unknown / max(1, tokens):.3%})"


class ExpectFertility(Aggregate):
    """A tokenizer needs at most a number of tokens per word."""

    at_most: float
    unit: str
    success_keys: ClassVar[tuple[str, ...]] = ("at_most", "unit")

    def answer(self, table: pd.DataFrame) -> tuple[bool, str]:
        """Also met with too little text to train on."""
        if not table["token_count"].sum():
            return True, TOO_LITTLE_TEXT
        fertility = table["token_count"].sum() / max(1, table["word_count"].sum())
        return bool(fertility <= self.at_most), f"{fertility:.3f} tokens per {self.unit}"


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
