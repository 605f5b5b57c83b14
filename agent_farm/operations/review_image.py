"""`review_image`: an image in a result, as it is or as it was before."""

from __future__ import annotations

import base64
from typing import Annotated

from msgspec import Meta

from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.operations.review_mark import Tip, no_such_file
from agent_farm.operations.review_show import require_result
from agent_farm.review.diff_as_read import shown_text
from agent_farm.review.kept import Side

_MOST_BYTES = 5_000_000
# Recognised by their first bytes; formats that may contain scripts are left out.
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


class ReviewImageRequest(Request):
    id: BuilderId
    file: Annotated[str, Meta(description="File that the result changes")]
    side: Annotated[Side, Meta(description="As it is, or as it was before")] = "new"
    tip: Tip = None


class ReviewImage(Answer):
    """`data` is null if it is not an image that every browser shows, or is too large."""

    type: str | None
    size: int
    data: Annotated[str | None, Meta(description="Its bytes in base64")]


@reads(
    "Show an image that a result changes, as it is or as it was",
    elsewhere="fetched",
)
def review_image(context: Context, request: ReviewImageRequest) -> ReviewImage:
    farm = context.farm
    result = require_result(farm, choose(context, request.id), request.tip)
    new = request.side == "new"
    paths = [file.path if new else file.former for file in result.files]
    path = next((path for path in paths if shown_text(path) == request.file), None)
    if path is None:
        raise no_such_file(request.id, request.file)
    content = farm.repository.read_blob(result.round.tip if new else result.round.start, path)
    kind = next((kind for start, kind in _KINDS.items() if content.startswith(start)), None)
    fits = kind is not None and len(content) <= _MOST_BYTES
    return ReviewImage(kind, len(content), base64.b64encode(content).decode() if fits else None)
