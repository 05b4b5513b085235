"""A resources server for NeMo Gym (not for gymkit): counter tasks with partial credit, extra metrics and masks.

NeMo Gym's own counter knows only 0 and 1 and never masks, so ``make.py`` runs this one for the ``graded`` records.
It is imported by NeMo Gym's Python alone.
"""

from fastapi import FastAPI, Request
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import BaseModel, ConfigDict, Field


class Add(BaseModel):
    count: int


class Task(BaseVerifyRequest):
    model_config = ConfigDict(extra="allow")
    expected_count: int
    mask: bool = False


class Graded(BaseVerifyResponse):
    model_config = ConfigDict(extra="allow")


class GradedCounter(SimpleResourcesServer):
    ray_enabled = False
    config: BaseResourcesServerConfig
    counts: dict[str, int] = Field(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/increment_counter")(self.increment_counter)
        app.post("/get_counter_value")(self.get_counter_value)
        return app

    async def seed_session(self, request: Request, body: BaseSeedSessionRequest) -> BaseSeedSessionResponse:
        self.counts[request.session[SESSION_ID_KEY]] = (await request.json())["initial_count"]
        return BaseSeedSessionResponse()

    async def increment_counter(self, request: Request, body: Add) -> dict:
        self.counts[request.session[SESSION_ID_KEY]] += body.count
        return {"success": True}

    async def get_counter_value(self, request: Request) -> dict:
        return {"count": self.counts[request.session[SESSION_ID_KEY]]}

    async def verify(self, request: Request, body: Task) -> Graded:
        distance = abs(body.expected_count - self.counts[request.session[SESSION_ID_KEY]])
        reward = 1 / (1 + distance)
        extras = {"exact": distance == 0, "reward_components": {"exact": float(distance == 0), "near": reward}}
        if distance:
            extras["distance"] = distance
        if body.mask:
            extras |= {"mask_sample": True, "failure_kind": "verifier_error", "failure_reason": "the scale was broken"}
            reward = 0.0
        return Graded(**body.model_dump(), reward=reward, **extras)


if __name__ == "__main__":
    GradedCounter.run_webserver()
