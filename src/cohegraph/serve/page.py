"""The page for people, at /: static files, and HTML made where the explanations are made."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse

from cohegraph.corpora.starter import starter_corpus
from cohegraph.explain.render import comparison_fragment, environment, fragment, part, style
from cohegraph.serve.api import CompareRequest, ExplainRequest, Service

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_EXAMPLE_LEVEL = "medium"


def add_page(app: FastAPI) -> None:
    """Serve the page of an application that `create_app` has made."""
    service: Service = app.state.service

    @app.get("/", include_in_schema=False)
    async def index() -> HTMLResponse:
        model = service.model
        page = environment().get_template("index.html.jinja")
        return HTMLResponse(
            page.render(
                model=model.name_,
                note=model.note_,
                levels=list(model.levels_),
                documents=model.documents_,
                k=model.settings_.subgraphs.k,
                window=model.settings_.subgraphs.window,
                example=_example(),
                method=part("method.svg"),
            )
        )

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        page = environment().get_template("docs.html.jinja")
        return HTMLResponse(page.render(routes=list(_described(app.openapi())), schemas=_schemas(app.openapi())))

    @app.get("/page/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        content = {
            "style.css": lambda: style() + part("page.css"),
            "view.js": lambda: part("view.js"),
            "page.js": lambda: part("page.js"),
        }.get(name)
        if content is None:
            raise HTTPException(404)
        return Response(content(), media_type=_TYPES[PurePath(name).suffix])

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return Response(status_code=204)

    @app.post("/page/explanation", include_in_schema=False)
    async def explanation(wanted: ExplainRequest, request: Request) -> HTMLResponse:
        found = await service.explained(wanted.text, wanted.what_if, request)
        return HTMLResponse(await asyncio.to_thread(fragment, found))

    @app.post("/page/comparison", include_in_schema=False)
    async def comparison(wanted: CompareRequest) -> HTMLResponse:
        before, after = [(await service.seen(text)).explanation for text in (wanted.before, wanted.after)]
        return HTMLResponse(await asyncio.to_thread(comparison_fragment, before, after))


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


def _example() -> str:
    """A text to try the page with."""
    return next(one.text for one in starter_corpus() if one.label == _EXAMPLE_LEVEL)
