"""``weather``: answer a question about a city with one call of one tool. No state.

NeMo Gym calls it ``example_single_tool_call``.
"""

from __future__ import annotations

from typing import Any

from gymkit.servers.resources import ResourcesServer
from gymkit.servers.tool import tool
from gymkit.wire.tasks import TaskRow


class Weather(ResourcesServer[None]):
    """The weather's server: reward 1 when the agent asked for the weather at least once, else 0."""

    implementation = "weather"
    stateless = True

    @tool
    def get_weather(self, state: None, city: str) -> dict[str, str]:
        """Report the weather of a city."""
        return {"city": city, "weather_description": f"It is cold in {city}."}

    def verify(self, state: None, task: TaskRow, response: dict[str, Any]) -> float:
        """1.0 when the trajectory holds a ``get_weather`` call."""
        return float(
            any(
                item.get("type") == "function_call" and item.get("name") == "get_weather" for item in response["output"]
            )
        )
