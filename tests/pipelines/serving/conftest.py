"""The trained classifiers of the evaluations' tests, for tests of serving."""

from tests.pipelines.judging.evaluations.conftest import trained

__all__ = ["trained"]
