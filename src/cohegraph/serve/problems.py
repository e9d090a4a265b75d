"""What a client is told when something is wrong: a problem description (RFC 9457), never a traceback."""

import logging
import traceback
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from cohegraph.errors import CohegraphError, in_words
from cohegraph.serve.batcher import StoppedError, TooBusyError, TooLongError
from cohegraph.strings import well_formed

MEDIA_TYPE = "application/problem+json"
# Marks the steps in the place of an error that no client has written: which one of several kinds of body it has sent.
KIND = "kind:"
FAILED, FAILED_CODE = "The server failed at this: try again, or send another text.", "server-failed"
_SECONDS_TO_WAIT = 1
_LONGEST_PLACE = 80
_CODES = {400: "not-json", 404: "not-found", 405: "method-not-allowed"}
# What pydantic complains of, by its names for it; all else is a value that is not valid.
_CODES_OF_FIELDS = {"missing": "missing-field", "extra_forbidden": "unknown-field"}
_log = logging.getLogger("cohegraph.serve")


class Problem(BaseModel):
    """A problem description."""

    type: str = "about:blank"
    title: str = Field(description="What kind of problem it is.")
    status: int
    code: str = Field(description="What is wrong, for programs: it stays the same when `detail` is reworded.")
    detail: str = Field(description="What is wrong with this request, and what to do, for people.")
    field: str | None = Field(None, description="The field of the request that is wrong, such as `texts.1`.")


class ProblemError(Exception):
    """Ends a request with a problem description."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


def problem(
    status: int, code: str, detail: str, *, field: str | None = None, headers: dict[str, str] | None = None
) -> JSONResponse:
    """The answer to a request that cannot be served."""
    found = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        # The names of fields that a client made up may hold what cannot be written as UTF-8.
        detail=well_formed(detail),
        field=None if field is None else well_formed(field),
    )
    return JSONResponse(found.model_dump(), status, headers, MEDIA_TYPE)


def too_busy() -> JSONResponse:
    """The answer where too many texts wait."""
    wait = {"Retry-After": str(_SECONDS_TO_WAIT)}
    return problem(429, "too-busy", "Too many texts are waiting: try again in a moment.", headers=wait)


def failed() -> JSONResponse:
    """The answer where the server itself failed."""
    return problem(500, FAILED_CODE, FAILED)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problem descriptions as possible answers, for the OpenAPI document."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def log_failure(error: BaseException) -> None:
    """Log where the server itself failed, without the message of the error, which could hold a text."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("The server failed with %s:\n%s", type(error).__name__, where)


def install(app: FastAPI) -> None:
    """Answer every error of an application with a problem description."""

    @app.exception_handler(ProblemError)
    async def _own(_: Request, error: ProblemError) -> JSONResponse:
        return problem(error.status, error.code, error.detail)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers) if error.headers else None
        return problem(error.status_code, _code(error), _sentence(request, error), headers=headers)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return _not_valid(error)

    @app.exception_handler(CohegraphError)
    async def _refused(_: Request, error: CohegraphError) -> JSONResponse:
        return problem(422, error.code, str(error))

    @app.exception_handler(TooLongError)
    async def _too_long(_: Request, error: TooLongError) -> JSONResponse:
        return problem(422, error.code, str(error), field=None if error.number is None else f"texts.{error.number - 1}")

    @app.exception_handler(TooBusyError)
    async def _busy(_: Request, __: TooBusyError) -> JSONResponse:
        return too_busy()

    @app.exception_handler(StoppedError)
    async def _stopped(_: Request, error: StoppedError) -> JSONResponse:
        return problem(503, error.code, str(error))


def _code(error: HTTPException) -> str:
    """The code of an error of the framework: its own, or one for its status."""
    return str(getattr(error, "code", None) or _CODES.get(error.status_code, "http-error"))


def _sentence(request: Request, error: HTTPException) -> str:
    """What the framework says in a word, in a sentence."""
    if error.status_code == 404:
        return "There is nothing at this address: /docs lists what there is."
    if error.status_code == 405:
        takes = (error.headers or {}).get("Allow", "another method")
        return f"This address does not take {request.method}: use {takes}."
    if error.status_code == 400:
        return "The body cannot be read as JSON: send it as UTF-8, complete and not nested deeply."
    return f"{str(error.detail).rstrip('.')}."


def _not_valid(error: RequestValidationError) -> JSONResponse:
    """What is wrong, without what was given: it is people's text, and could not always be written down again."""
    first = error.errors()[0]
    within, *steps = (str(step) for step in first["loc"] if not str(step).startswith(KIND))
    if first["type"] == "json_invalid":
        return problem(400, "not-json", f"The body is not JSON from character {steps[0]} on: correct it there.")
    if within == "body" and isinstance(error.body, bytes):
        return problem(
            415, "wrong-content-type", "The body is not declared as JSON: send 'Content-Type: application/json'."
        )
    place = ".".join(steps)[:_LONGEST_PLACE]
    if not place:
        return problem(422, f"invalid-{within}", f"The {within} is not valid: {in_words(first)}.")
    code = _CODES_OF_FIELDS.get(first["type"], "invalid-field")
    return problem(422, code, f"The field '{place}' is not valid: {in_words(first)}.", field=place)
