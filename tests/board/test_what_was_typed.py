"""What somebody typed on the board stays until it is done with, and no longer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agent_farm.board.acts import Acts
from agent_farm.board.review_acts import ReviewActs
from agent_farm.errors import AgentFarmError


def screen() -> Any:
    return SimpleNamespace(
        say=lambda *told: None, changed=[], place=0, items=[None], again=lambda: asyncio.sleep(0)
    )


class Asked:
    """A verb that is under way until the test lets it end."""

    def __init__(self, answer: object) -> None:
        self.answer, self.is_there, self.may_end = answer, asyncio.Event(), asyncio.Event()

    async def __call__(self, verb: str, **fields: object) -> object:
        self.is_there.set()
        await self.may_end.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def writes(acts: Acts | ReviewActs, *texts: str) -> None:
    lines = iter(texts)

    async def written(title: str, *about: str) -> str:
        text = next(lines)
        acts.left[about] = text
        return text

    acts._written = written  # type: ignore[method-assign]


TO_X: Any = [SimpleNamespace(id="x")]
SENT = SimpleNamespace(deliveries=[SimpleNamespace(id="x", outcome="submitted", reason=None)])


@pytest.mark.parametrize("answer", [SENT, AgentFarmError("x has ended")])
def test_a_message_that_is_on_its_way_takes_no_other_along(answer: object) -> None:
    """The next one to the same builder is typed meanwhile, and left with Esc."""

    async def run() -> dict[tuple[str, ...], str]:
        acts = Acts(screen())
        writes(acts, "the first")
        acts._ask = asked = Asked(answer)  # type: ignore[method-assign]
        sending = asyncio.create_task(acts.message(TO_X))
        await asked.is_there.wait()
        assert acts.left == {}
        acts.left["x",] = "half a second one"
        asked.may_end.set()
        await asyncio.wait([sending])
        assert isinstance(sending.exception(), AgentFarmError) == isinstance(answer, AgentFarmError)
        return acts.left

    assert asyncio.run(run()) == {("x",): "half a second one"}


def test_a_message_that_could_not_be_sent_is_there_again() -> None:
    async def run() -> dict[tuple[str, ...], str]:
        acts = Acts(screen())
        writes(acts, "the first")
        acts._ask = asked = Asked(AgentFarmError("x has ended"))  # type: ignore[method-assign]
        asked.may_end.set()
        with pytest.raises(AgentFarmError):
            await acts.message(TO_X)
        return acts.left

    assert asyncio.run(run()) == {("x",): "the first"}


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_reason_is_there_again_until_it_has_been_given(is_refused: bool) -> None:
    async def run() -> dict[tuple[str, ...], str]:
        acts = ReviewActs(screen())
        writes(acts, "too large")
        answer = AgentFarmError("it has new commits") if is_refused else SimpleNamespace(sent=None)
        acts._ask = asked = Asked(answer)  # type: ignore[method-assign]
        asked.may_end.set()
        shown: Any = SimpleNamespace(shown=SimpleNamespace(id="x", tip="0" * 40))
        rejecting = asyncio.create_task(acts.reject(shown))
        await asyncio.wait([rejecting])
        assert isinstance(rejecting.exception(), AgentFarmError) == is_refused
        return acts.left

    assert asyncio.run(run()) == ({("x", "rejected"): "too large"} if is_refused else {})
