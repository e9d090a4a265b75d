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
from cohegraph.strings import well_formed

MEDIA_TYPE = "application/problem+json"
# Marks the steps in the place of an error that no client has written: which one of several kinds of body it has sent.
KIND = "kind:"
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


class ProblemError(HTTPException):
    """Ends a request with a problem description.

    As an HTTPException, it also passes through FastAPI where it is raised while FastAPI reads a body.
    """

    def __init__(
        self, status: int, code: str, detail: str, *, field: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, headers)
        self.code, self.field = code, field

    def answer(self) -> JSONResponse:
        """The answer to the request."""
        found = Problem(
            title=HTTPStatus(self.status_code).phrase,
            status=self.status_code,
            code=self.code,
            # The names of fields that a client made up may hold what cannot be written as UTF-8.
            detail=well_formed(self.detail),
            field=None if self.field is None else well_formed(self.field),
        )
        return JSONResponse(found.model_dump(), self.status_code, self.headers, MEDIA_TYPE)


def failed(error: BaseException) -> ProblemError:
    """The problem of a server that failed itself; logged without the error's message, which could hold a text."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("The server failed with %s:\n%s", type(error).__name__, where)
    return ProblemError(500, "server-failed", "The server failed at this: try again, or send another text.")


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

    async def answer(request: Request, error: Exception) -> JSONResponse:
        return _as_problem(request, error).answer()

    for kind in (HTTPException, RequestValidationError, CohegraphError):
        app.add_exception_handler(kind, answer)


def _as_problem(request: Request, error: Exception) -> ProblemError:
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return _not_valid(error)
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        return ProblemError(status, _CODES.get(status, "http-error"), _sentence(request, error), headers=headers)
    return ProblemError(422, getattr(error, "code", "bad-input"), str(error))


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


def _not_valid(error: RequestValidationError) -> ProblemError:
    """What is wrong, without what was given: it is people's text, and could not always be written down again."""
    first = error.errors()[0]
    within, *steps = (str(step) for step in first["loc"] if not str(step).startswith(KIND))
    if first["type"] == "json_invalid":
        return ProblemError(400, "not-json", f"The body is not JSON from character {steps[0]} on: correct it there.")
    if within == "body" and isinstance(error.body, bytes):
        return ProblemError(415, "wrong-content-type", "Send the body with 'Content-Type: application/json'.")
    place = ".".join(steps)[:_LONGEST_PLACE]
    if not place:
        return ProblemError(422, f"invalid-{within}", f"The {within} is not valid: {in_words(first)}.")
    code = _CODES_OF_FIELDS.get(first["type"], "invalid-field")
    return ProblemError(422, code, f"The field '{place}' is not valid: {in_words(first)}.", field=place)
