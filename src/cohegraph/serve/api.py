"""The HTTP interface: FastAPI, described by OpenAPI at /openapi.json and shown at /docs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints, Tag
from starlette.requests import ClientDisconnect

from cohegraph.assessment import Sureness
from cohegraph.explain.arcs import draw_arcs
from cohegraph.explain.compare import Comparison, compare
from cohegraph.explain.explain import Seen, look_at, parsed
from cohegraph.explain.explanation import Explanation, Level
from cohegraph.explain.render import report
from cohegraph.model.coherence_model import CoherenceModel
from cohegraph.serve import problems
from cohegraph.serve.batcher import Batcher, too_long
from cohegraph.serve.guard import OPEN, STREAM, Guard, State
from cohegraph.serve.limits import Limits
from cohegraph.serve.metrics import CONTENT_TYPE, Metrics
from cohegraph.serve.streaming import LinesResponse, answers
from cohegraph.strings import well_formed
from cohegraph.version import __version__

_ABOUT = (
    "Measures how coherent English texts are, from how their sentences connect, and explains why. Texts are neither "
    "stored nor logged. Errors are problem descriptions (RFC 9457)."
)
_MOST_TRIED = 50
_LINES = LinesResponse.media_type
# Answers in the OpenAPI document: a text of some kind, and what any request with texts may be refused with.
_A_TEXT = {"schema": {"type": "string"}}
_REFUSALS = problems.described(400, 413, 415, 422, 429, 500, 503)
# A text that was cut inside a character is served, as it is in a stream and elsewhere.
Text = Annotated[
    str,
    StringConstraints(strict=True),
    BeforeValidator(lambda value: well_formed(value) if isinstance(value, str) else value),
]
SentenceNumber = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


def _kind(name: str) -> Tag:
    return Tag(problems.KIND + name)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OneText(_Request):
    """One text to assess."""

    text: Text


class ManyTexts(_Request):
    """Many texts to assess."""

    texts: list[Text] = Field(min_length=1)


# Told apart before they are looked at, so that a complaint is about the one that was meant.
OneOrManyTexts = Annotated[
    Annotated[OneText, _kind("one")] | Annotated[ManyTexts, _kind("many")],
    Discriminator(lambda value: problems.KIND + ("many" if isinstance(value, dict) and "texts" in value else "one")),
]


class ExplainRequest(_Request):
    """A text to explain."""

    text: Text
    what_if: Annotated[
        Annotated[int, Field(ge=0, le=_MOST_TRIED, strict=True), _kind("count")]
        | Annotated[list[SentenceNumber], Field(max_length=_MOST_TRIED), _kind("numbers")],
        Discriminator(lambda value: problems.KIND + ("numbers" if isinstance(value, list) else "count")),
    ] = Field(
        3,
        description="Of how many sentences, from the loosest, removal and move are tried, or their numbers. Long texts "
        "have fewer tried.",
    )


class CompareRequest(_Request):
    """Two versions of a text."""

    before: Text
    after: Text


class AssessedText(BaseModel):
    """The verdict on a text."""

    level: Level | None
    score: float | None = Field(description="From 0 to 100; none where the order of the levels is not known.")
    probabilities: dict[str, float]
    sureness: Sureness | None
    unlikeness: float | None
    counts: dict[str, int]
    notices: list[str] = Field(description="What limits the verdict, a sentence each.")
    notice_codes: list[str] = Field(description="The code of each notice, which does not change with its wording.")


class AssessAnswer(BaseModel):
    """The verdicts on texts, in their order."""

    model: str
    results: list[AssessedText]


class CompareAnswer(BaseModel):
    """Two versions of a text, and what changed."""

    before: Explanation
    after: Explanation
    comparison: Comparison


class ModelAnswer(BaseModel):
    """What the model is."""

    name: str
    note: str
    cohegraph: str
    system: str
    levels: list[Level]
    ordered: bool
    documents: int = Field(description="How many documents it learnt from.")
    temperature: float = Field(description="What its probabilities are calibrated with; 1 where they are not.")
    settings: dict[str, Any]
    parts: dict[str, str]
    limits: Limits


class Health(BaseModel):
    """Whether the server takes on texts."""

    status: Literal["ready", "stopping"]
    waiting: int


@dataclass(frozen=True)
class Service:
    """What all routes share."""

    model: CoherenceModel
    batcher: Batcher
    limits: Limits
    metrics: Metrics
    state: State

    async def seen(self, text: str) -> Seen:
        """A text as the model sees it."""

        def look() -> Seen:
            if wrong := too_long(len(text), "characters", self.limits):
                raise wrong
            document = parsed(self.model, text)
            if wrong := too_long(len(document.sentences), "sentences", self.limits):
                raise wrong
            return look_at(self.model, document)

        return await self.batcher.call(look)

    async def versions(self, wanted: CompareRequest) -> list[Explanation]:
        """The explanations of two versions of a text."""
        return [(await self.seen(text)).explanation for text in (wanted.before, wanted.after)]

    async def explained(self, text: str, what_if: int | list[int], request: Request) -> Explanation:
        """The explanation of a text; changed texts wait behind those of others, and are left when the client leaves."""
        seen = await self.seen(text)
        wanted, changes = [], []
        left = self.limits.rescored
        for sentence in seen.chosen(what_if):
            of_it = seen.changes(sentence)
            left -= sum(len(change.text) for change in of_it)
            if left < 0:
                break
            wanted.append(sentence)
            changes += of_it
        verdicts, size = [], max(1, min(self.limits.batch, self.limits.queue // 4))
        for start in range(0, len(changes), size):
            if await request.is_disconnected():
                raise ClientDisconnect
            texts = [change.text for change in changes[start : start + size]]
            verdicts += await self.batcher.assess(texts, patient=True)
        return seen.explained(wanted, changes, verdicts)


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


Served = Annotated[Service, Depends(_service)]
routes = APIRouter()


@routes.post("/v1/assess", responses=_REFUSALS, tags=["texts"])
async def assess(request: OneOrManyTexts, service: Served) -> AssessAnswer:
    """The level of one text or of many."""
    texts = [request.text] if isinstance(request, OneText) else request.texts
    # More than the queue holds would be put off for ever.
    most = min(service.limits.texts, service.limits.queue)
    if len(texts) > most:
        detail = f"There are {len(texts)} texts, and {most} is the most: use {STREAM}."
        raise problems.ProblemError(413, "too-many-texts", detail)
    found = await service.batcher.assess(texts)
    return AssessAnswer(model=service.model.name_, results=[AssessedText(**one.to_dict()) for one in found])


_EXAMPLE = {"example": '{"id": "a", "text": "It rains."}\n'}


@routes.post(
    STREAM,
    response_class=LinesResponse,
    tags=["texts"],
    responses={200: {"content": {_LINES: _A_TEXT}}},
    openapi_extra={"requestBody": {"required": True, "content": {_LINES: {**_A_TEXT, **_EXAMPLE}}}},
)
async def stream(request: Request, service: Served) -> LinesResponse:
    """The level of any number of texts, JSON Lines in and out, in their order.

    A line is a string, or an object with a string as `text` and perhaps an `id`. The answer to each has its number as
    `line`, its `id`, and what /v1/assess gives, or `error` and its `code`. Blank lines count and have no answer.
    """
    return LinesResponse(answers(request.stream(), service.batcher, service.limits))


@routes.post(
    "/v1/explain",
    response_model=Explanation,
    tags=["texts"],
    responses={200: {"content": {"text/html": _A_TEXT, "image/svg+xml": _A_TEXT}}, **_REFUSALS},
)
async def explain(
    wanted: ExplainRequest, request: Request, service: Served, format: Literal["json", "html", "svg"] = "json"
) -> Any:
    """Why a text has its level: as data, as a page in one file, or as the picture alone."""
    what_if = 0 if format == "svg" else wanted.what_if
    found = await service.explained(wanted.text, what_if, request)
    if format == "html":
        return Response(await asyncio.to_thread(report, found), media_type="text/html")
    if format == "svg":
        return Response(await asyncio.to_thread(draw_arcs, found), media_type="image/svg+xml")
    return found


@routes.post(
    "/v1/compare",
    response_model=CompareAnswer,
    tags=["texts"],
    responses={200: {"content": {"text/html": _A_TEXT}}, **_REFUSALS},
)
async def compare_versions(wanted: CompareRequest, service: Served, format: Literal["json", "html"] = "json") -> Any:
    """What changed from one version of a text to the next: as data, or as a page in one file."""
    before, after = await service.versions(wanted)
    if format == "html":
        return Response(await asyncio.to_thread(report, after, earlier=before), media_type="text/html")
    comparison = await asyncio.to_thread(compare, before, after)
    return CompareAnswer(before=before, after=after, comparison=comparison)


@routes.get("/v1/model", tags=["server"])
async def about_model(service: Served) -> ModelAnswer:
    """The model, its levels, and the limits of this server."""
    model = service.model
    return ModelAnswer(
        name=model.name_,
        note=model.note_,
        cohegraph=__version__,
        system=model.system_.name,
        levels=list(model.levels_),
        ordered=model.ordered_,
        documents=model.documents_,
        temperature=model.calibration_.temperature,
        settings=model.settings_.to_dict(),
        parts=model.parts_,
        limits=service.limits,
    )


@routes.get("/healthz", responses={503: {"model": Health}}, tags=["server"])
async def health(response: Response, service: Served) -> Health:
    """Whether the server accepts texts: 503 once it was told to stop."""
    stopping = service.state.draining or service.batcher.stopping
    response.status_code = 503 if stopping else 200
    return Health(status="stopping" if stopping else "ready", waiting=service.batcher.waiting)


@routes.get("/metrics", tags=["server"], response_class=Response, responses={200: {"content": {"text/plain": _A_TEXT}}})
async def metrics(service: Served) -> Response:
    """Counters for Prometheus."""
    return Response(service.metrics.page(), media_type=CONTENT_TYPE)


def create_app(
    model: CoherenceModel,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    prepare: Callable[[], None] = lambda: None,
) -> FastAPI:
    """The application that serves a model.

    Args:
        model: Any trained model.
        limits: What it takes on.
        token: What clients must send to be served; without it, all are.
        hosts: The names that clients may call it by; without them, any.
        prepare: Called first on the thread that scores.
    """
    limits, state = limits or Limits(), State()
    counters = Metrics(lambda: batcher.waiting)
    batcher = Batcher(model, limits, prepare=prepare, on_batch=counters.on_batch)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.stop()

    app = FastAPI(
        title="cohegraph",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=problems.described(401) if token is not None else None,
    )
    app.state.service = Service(model, batcher, limits, counters, state)
    problems.install(app)
    app.include_router(routes)
    app.add_middleware(Guard, limits=limits, metrics=counters, token=token, hosts=hosts, state=state)
    _describe(app, token)
    return app


def _describe(app: FastAPI, token: str | None) -> None:
    """Complete the OpenAPI document with what FastAPI does not know of."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            schemas = schema.setdefault("components", {}).setdefault("schemas", {})
            schemas["Problem"] = problems.Problem.model_json_schema()
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            if token is not None:
                schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                schema["security"] = [{"token": []}]
                for path in set(OPEN) & set(schema["paths"]):
                    for operation in schema["paths"][path].values():
                        operation["security"] = []
                        operation["responses"].pop("401", None)
        return app.openapi_schema or {}

    app.openapi = described  # type: ignore[method-assign]
