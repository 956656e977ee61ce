"""The HTTP face of a listening test: plain JSON and WAV routes that any page, or none, can use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.routing import BaseRoute

from pcg.errors import PcgError
from pcg.listening.desk import Desk
from pcg.listening.page import standalone
from pcg.listening.store import Refused, Unknown

PREFIX = "/listening"
LISTENER = r"^[0-9a-f]{32}$"
Listener = Field(pattern=LISTENER)


class Join(BaseModel):
    """A listener enters a test."""

    model_config = ConfigDict(extra="forbid")
    listener: str = Listener
    consent: bool


class Check(BaseModel):
    """The outcome of the headphone check."""

    model_config = ConfigDict(extra="forbid")
    listener: str = Listener
    device: str = Field(pattern="^(headphones|speakers)$")
    correct: int = Field(ge=0, le=20)
    of: int = Field(ge=0, le=20)


class Vote(BaseModel):
    """One answer and how much of each clip was played, in seconds by letter."""

    model_config = ConfigDict(extra="forbid")
    listener: str = Listener
    trial: int = Field(ge=0, le=100_000)
    answer: dict[str, Any] = Field(max_length=2)
    heard: dict[str, float] = Field(max_length=20)


def _answer(work: Callable[[], Any]) -> Response:
    try:
        return JSONResponse(work(), headers={"Cache-Control": "no-store"})
    except PcgError as error:
        status = 404 if isinstance(error, Unknown) else 409 if isinstance(error, Refused) else 422
        return JSONResponse({"error": str(error)}, status_code=status)


def routes(desk: Desk) -> APIRouter:
    """All routes of the tests that `desk` runs, below `/listening`."""
    router = APIRouter(prefix=PREFIX, include_in_schema=False)

    @router.get("/studies/{study_id}")
    def about(study_id: str) -> Response:
        return _answer(lambda: desk.public(study_id))

    @router.post("/studies/{study_id}/join")
    def join(study_id: str, body: Join) -> Response:
        return _answer(lambda: desk.join(study_id, body.listener, body.consent))

    @router.post("/studies/{study_id}/check")
    def check(study_id: str, body: Check) -> Response:
        return _answer(
            lambda: desk.check(study_id, body.listener, body.device, body.correct, body.of)
        )

    @router.get("/studies/{study_id}/next")
    def next_question(study_id: str, listener: str) -> Response:
        return _answer(lambda: desk.state(study_id, listener))

    @router.post("/studies/{study_id}/votes")
    def vote(study_id: str, body: Vote) -> Response:
        return _answer(
            lambda: desk.vote(study_id, body.listener, body.trial, body.answer, body.heard)
        )

    @router.get("/clips/{token}")
    def clip(token: str) -> Response:
        try:
            data = desk.clip(token)
        except PcgError as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        headers = {
            "Cache-Control": "no-store, no-transform"
        }  # compressed sizes would tell clips apart
        return Response(data, media_type="audio/wav", headers=headers)

    @router.get("/take/{study_id}")
    def take(study_id: str) -> Response:
        try:
            return HTMLResponse(
                standalone(desk.public(study_id)), headers={"Cache-Control": "no-store"}
            )
        except PcgError as error:
            return HTMLResponse(str(error), status_code=404)

    return router


def mount(app: FastAPI, desk: Desk) -> None:
    """Put the routes before all others of `app`, so that a catch-all page of a host application
    does not hide them.
    """
    before: list[BaseRoute] = list(app.router.routes)
    app.include_router(routes(desk))
    added = [route for route in app.router.routes if route not in before]
    app.router.routes[:] = added + before


def serve_app(root: Path) -> FastAPI:
    """An application of its own that serves nothing but listening tests."""
    app = FastAPI(title="pcg listening tests", docs_url=None, redoc_url=None, openapi_url=None)
    desk = Desk(root)
    mount(app, desk)

    @app.get("/")
    def index(request: Request) -> Response:
        return _answer(lambda: [desk.public(study_id) for study_id in desk.store.study_ids()])

    app.state.desk = desk
    return app
