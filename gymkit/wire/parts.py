"""The parts that a message, a tool result or a reasoning item is made of.

Typed dicts, not classes: they describe the JSON as it lies in memory, so a checked object stays the very dict that came
over the wire, with every field that is not named here. ``output_*`` parts are written by an agent, ``input_*`` parts by
whoever talks to it.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class FileCitation(TypedDict):
    """A place in the text that cites a file."""

    type: Literal["file_citation"]
    """Says which annotation this is."""
    file_id: str
    """Id of the file."""
    filename: str
    """Name of the file."""
    index: int
    """Position in the text, in characters."""


class UrlCitation(TypedDict):
    """A stretch of the text that rests on a web page."""

    type: Literal["url_citation"]
    """Says which annotation this is."""
    url: str
    """Address of the page."""
    title: str
    """Title of the page."""
    start_index: int
    """First character of the stretch."""
    end_index: int
    """Last character of the stretch."""


class ContainerFileCitation(TypedDict):
    """A stretch of the text that cites a file made in a code container."""

    type: Literal["container_file_citation"]
    """Says which annotation this is."""
    container_id: str
    """Id of the container."""
    file_id: str
    """Id of the file."""
    filename: str
    """Name of the file."""
    start_index: int
    """First character of the stretch."""
    end_index: int
    """Last character of the stretch."""


class FilePath(TypedDict):
    """A file that the text hands over."""

    type: Literal["file_path"]
    """Says which annotation this is."""
    file_id: str
    """Id of the file."""
    index: int
    """Position of the file in the list of files."""


Annotation = Annotated[FileCitation | UrlCitation | ContainerFileCitation | FilePath, Field(discriminator="type")]
"""A remark that belongs to a stretch of output text."""


class TopLogprob(TypedDict):
    """One token that the model might have written at a position."""

    token: str
    """The token as text."""
    bytes: list[int]
    """The token as UTF-8 bytes."""
    logprob: float
    """Natural logarithm of the token's probability."""


class Logprob(TopLogprob):
    """The token that the model wrote at a position, and its rivals."""

    top_logprobs: list[TopLogprob]
    """The likeliest tokens at this position."""


class OutputText(TypedDict):
    """Text that an agent wrote."""

    type: Literal["output_text"]
    """Says which part this is."""
    text: str
    """The text."""
    annotations: list[Annotation]
    """Citations and files in the text; empty when there are none."""
    logprobs: NotRequired[list[Logprob] | None]
    """Probabilities of the tokens, when they were asked for."""


class Refusal(TypedDict):
    """An agent's words for not doing what it was asked."""

    type: Literal["refusal"]
    """Says which part this is."""
    refusal: str
    """The words."""


class InputText(TypedDict):
    """Text for an agent."""

    type: Literal["input_text"]
    """Says which part this is."""
    text: str
    """The text."""


class ResultImage(TypedDict):
    """An image in a tool's result."""

    type: Literal["input_image"]
    """Says which part this is."""
    detail: NotRequired[Literal["low", "high", "auto", "original"] | None]
    """How closely the model shall look."""
    image_url: NotRequired[str | None]
    """Address or data URL of the image."""
    file_id: NotRequired[str | None]
    """Id of an uploaded image."""


class InputImage(TypedDict):
    """An image in a message."""

    type: Literal["input_image"]
    """Says which part this is."""
    detail: Literal["low", "high", "auto", "original"]
    """How closely the model shall look."""
    image_url: NotRequired[str | None]
    """Address or data URL of the image."""
    file_id: NotRequired[str | None]
    """Id of an uploaded image."""


class InputFile(TypedDict):
    """A file for an agent."""

    type: Literal["input_file"]
    """Says which part this is."""
    detail: NotRequired[Literal["auto", "low", "high"] | None]
    """How closely the model shall look at its pages."""
    file_data: NotRequired[str | None]
    """The file itself, base64."""
    file_id: NotRequired[str | None]
    """Id of an uploaded file."""
    file_url: NotRequired[str | None]
    """Address of the file."""
    filename: NotRequired[str | None]
    """Name of the file."""


class InputVideo(TypedDict):
    """A video for an agent; NeMo Gym's own part, which the Responses API does not have."""

    type: Literal["input_video"]
    """Says which part this is."""
    video_url: NotRequired[str | dict[str, Any]]
    """Address of the video, or an object with ``url``."""
    video: NotRequired[str | dict[str, Any]]
    """The same under its other name; a part has one of the two."""


OutputPart = Annotated[OutputText | Refusal, Field(discriminator="type")]
"""A part of what an agent wrote."""

InputPart = Annotated[InputText | InputImage | InputFile | InputVideo, Field(discriminator="type")]
"""A part of a message to an agent."""

ResultPart = Annotated[InputText | ResultImage | InputFile, Field(discriminator="type")]
"""A part of a tool's result."""


class SummaryText(TypedDict):
    """A summary of a stretch of reasoning."""

    type: Literal["summary_text"]
    """Says which part this is."""
    text: str
    """The summary."""


class ReasoningText(TypedDict):
    """A stretch of reasoning as it was thought."""

    type: Literal["reasoning_text"]
    """Says which part this is."""
    text: str
    """The reasoning."""
