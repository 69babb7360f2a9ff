"""The application of `cursus serve`: predictions, a page to try them, health, metrics, and an OpenAPI description."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from pipelines.errors import CursusError, DataError
from pipelines.messages.translation import accepted_language, in_language, message
from pipelines.reports.elements.translated_templates import translating_environment
from pipelines.reports.elements.wording import plain
from pipelines.serving.answering.answering_model import AnsweringModel
from pipelines.serving.answering.checked_examples import checked_example, checked_text
from pipelines.task_families import Row, TaskFamily
from tasks.serving.batching import Batcher, BatchLimits, QueueFullError
from tasks.serving.metrics import ServerMetrics

MOST_EXAMPLES = 1024
PAGE = "page.html"


@dataclass(frozen=True)
class ServedModel:
    """An opened model, and how it is called."""

    title: str
    fingerprint: str
    """Empty for a folder that is no artifact."""
    model: AnsweringModel


class PredictRequest(BaseModel):
    """Examples: texts, or objects with the columns of the model's task."""

    model_config = ConfigDict(extra="forbid")

    inputs: Annotated[list[str | dict[str, Any]], Field(min_length=1, max_length=MOST_EXAMPLES)]


class PredictResponse(BaseModel):
    """One prediction for each example, in their order."""

    predictions: list[dict[str, Any]]


class ModelDescription(BaseModel):
    """The model that a server answers with."""

    title: str
    fingerprint: str
    task: str
    columns: dict[str, str]
    labels: list[str]


def create_application(served: ServedModel, limits: BatchLimits) -> FastAPI:
    """The application that answers with `served`. It protects itself from nobody: `tasks.serving.protection` does."""
    metrics = ServerMetrics(served.title, served.fingerprint)
    batcher = Batcher(served.model.predict, limits, metrics.batches.observe)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with batcher:
            yield

    # FastAPI's own pages load scripts from another host
    app = FastAPI(
        title=f"Cursus: {served.title}", version=version("cursus"), lifespan=lifespan, docs_url=None, redoc_url=None
    )

    @app.exception_handler(RequestValidationError)
    async def unreadable(request: Request, error: RequestValidationError) -> JSONResponse:
        metrics.requests.labels(422).inc()
        return JSONResponse({"detail": _first_mistake(error)}, 422)

    @app.post("/predict", summary="Predict", responses={422: {"description": "An example that the model cannot read."}})
    async def predict(request: PredictRequest) -> PredictResponse:
        began, status = time.perf_counter(), 200
        try:
            family = served.model.family
            rows = [_row(family, given, number) for number, given in enumerate(request.inputs, 1)]
            predictions = await batcher.predict(rows)
        except QueueFullError as error:
            status = 503
            raise HTTPException(status, str(error)) from None
        except CursusError as error:
            status = 422
            raise HTTPException(status, str(error)) from None
        except Exception:
            status = 500
            raise
        finally:
            metrics.requests.labels(status).inc()
            metrics.seconds.observe(time.perf_counter() - began)
        metrics.predictions.inc(len(predictions))
        return PredictResponse(predictions=[one.as_json() for one in predictions])

    @app.get("/model", summary="What is served")
    async def model() -> ModelDescription:
        return describe(served)

    @app.get("/health", summary="Whether the server answers; needs no account")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", summary="Figures in the format of Prometheus", response_class=Response)
    async def figures() -> Response:
        return Response(metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/", include_in_schema=False, response_class=HTMLResponse)
    async def page(request: Request) -> HTMLResponse:
        nonce = secrets.token_urlsafe(16)
        with in_language(accepted_language(request.headers.get("accept-language", ""))):
            text = render_page(nonce, served)
        only = f"default-src 'none'; connect-src 'self'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'"
        policy = f"{only}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Vary": "Accept-Language"}
        return HTMLResponse(text, headers=headers)

    return app


def render_page(nonce: str, served: ServedModel) -> str:
    """The page to try the model, in the current language; only what has the `nonce` is applied or run."""
    source = files(__package__).joinpath(PAGE).read_text(encoding="utf-8")
    task = served.model.family.name
    values = {"tasks": {task: plain(task)}, "labels": message("{count} labels", count="{count}")}
    return translating_environment().from_string(source).render(nonce=nonce, **values)


def describe(served: ServedModel) -> ModelDescription:
    """What the page and programs need to know of a model."""
    model = served.model
    return ModelDescription(
        title=served.title,
        fingerprint=served.fingerprint,
        task=model.family.name,
        columns=model.columns,
        labels=list(model.labels),
    )


def _first_mistake(error: RequestValidationError) -> str:
    """The first mistake of a request, without what was sent: an answer in JSON cannot hold NaN or half a surrogate
    pair, and would repeat up to 16 MiB."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    reason = str(first["msg"])
    if first["type"] == "json_invalid":
        where, reason = f"character {where}", f"not JSON ({first['ctx']['error']})"
    return (f"{where}: {reason}" if where else reason).encode("utf-8", "replace").decode()


def _row(family: TaskFamily, given: Any, number: int) -> Row:
    if not isinstance(given, str):
        return checked_example(family, given, f"input {number}")
    if not family.is_single_text:
        raise DataError(f"input {number}: a text, but an example of {family.name} is an object with several columns")
    return {"text": checked_text(given, f"input {number}")}
