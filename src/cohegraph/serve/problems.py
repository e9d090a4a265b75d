"""What a client is told when something is wrong: a problem description (RFC 9457), never a traceback."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from cohegraph.errors import CohegraphError
from cohegraph.serve.batcher import TooBusyError

MEDIA_TYPE = "application/problem+json"
_SECONDS_TO_WAIT = 1


class Problem(BaseModel):
    """A problem description."""

    type: str = "about:blank"
    title: str = Field(description="What kind of problem it is.")
    status: int
    detail: str = Field(description="What is wrong with this request, and what to do.")


class ProblemError(Exception):
    """Ends a request with a problem description."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer to a request that cannot be served."""
    found = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail)
    return JSONResponse(found.model_dump(), status, headers, MEDIA_TYPE)


def too_busy() -> JSONResponse:
    """The answer where too many texts wait."""
    return problem(429, "Too many texts are waiting: try again in a moment.", {"Retry-After": str(_SECONDS_TO_WAIT)})


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problem descriptions as possible answers, for the OpenAPI document."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Answer every error of an application with a problem description."""

    @app.exception_handler(ProblemError)
    async def _own(_: Request, error: ProblemError) -> JSONResponse:
        return problem(error.status, error.detail, error.headers)

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        return problem(error.status_code, str(error.detail), dict(error.headers) if error.headers else None)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        # Without what was given: it is people's text, and could not always be written down again.
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        return problem(422, f"{place}: {first['msg']}.")

    @app.exception_handler(CohegraphError)
    async def _refused(_: Request, error: CohegraphError) -> JSONResponse:
        return problem(422, str(error))

    @app.exception_handler(TooBusyError)
    async def _busy(_: Request, __: TooBusyError) -> JSONResponse:
        return too_busy()
