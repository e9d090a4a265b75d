"""The page for people, at /: static files, and HTML made where the explanations are made."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse

from cohegraph.corpora.starter import starter_corpus
from cohegraph.explain.render import comparison_fragment, environment, fragment, part, style
from cohegraph.graph.links import LINKERS
from cohegraph.serve.api import CompareRequest, ExplainRequest, Served

_EXAMPLE_LEVEL = "medium"


routes = APIRouter(include_in_schema=False)


def add_page(app: FastAPI) -> None:
    """Serve the page of an application that `create_app` has made."""
    app.include_router(routes)


@routes.get("/")
async def index(service: Served) -> HTMLResponse:
    """The page."""
    model, linkers = service.model, service.model.settings_.links.linkers
    page = environment().get_template("index.html.jinja")
    return HTMLResponse(
        page.render(
            model=model.name_,
            note=model.note_,
            levels=list(model.levels_),
            documents=model.documents_,
            k=model.settings_.subgraphs.k,
            window=model.settings_.subgraphs.window,
            example=next(one.text for one in starter_corpus() if one.label == _EXAMPLE_LEVEL),
            method=part("method.svg"),
            by_nouns_only=linkers == ("nouns",),
            linkers="; ".join(LINKERS[name].about for name in linkers),
        )
    )


@routes.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """What the OpenAPI document says, for people."""
    page, document = environment().get_template("docs.html.jinja"), request.app.openapi()
    return HTMLResponse(page.render(routes=list(_described(document)), schemas=_schemas(document)))


@routes.get("/page/static/{name}")
async def static(name: str) -> Response:
    """The style and the scripts of the page."""
    if name == "style.css":
        return Response(style() + part("page.css"), media_type="text/css")
    if name not in ("view.js", "page.js"):
        raise HTTPException(404)
    return Response(part(name), media_type="text/javascript")


@routes.get("/favicon.ico")
async def icon() -> Response:
    """No icon."""
    return Response(status_code=204)


@routes.post("/page/explanation")
async def explanation(wanted: ExplainRequest, request: Request, service: Served) -> HTMLResponse:
    """An explanation as a part of the page."""
    found = await service.explained(wanted.text, wanted.what_if, request)
    return HTMLResponse(await asyncio.to_thread(fragment, found))


@routes.post("/page/comparison")
async def comparison(wanted: CompareRequest, service: Served) -> HTMLResponse:
    """A comparison as a part of the page."""
    return HTMLResponse(await asyncio.to_thread(comparison_fragment, *await service.versions(wanted)))


def _described(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The operations of an OpenAPI document, as its page shows them."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {})
            yield {
                "method": method.upper(),
                "path": path,
                "about": operation.get("description", ""),
                "parameters": operation.get("parameters", []),
                "takes": {kind: json.dumps(content.get("schema", {}), indent=1) for kind, content in body.items()},
                "gives": {
                    status: (answer["description"], list(answer.get("content", {})))
                    for status, answer in operation["responses"].items()
                },
            }


def _schemas(document: dict[str, Any]) -> dict[str, str]:
    found = document.get("components", {}).get("schemas", {})
    return {name: json.dumps(schema, indent=1, ensure_ascii=False) for name, schema in sorted(found.items())}
