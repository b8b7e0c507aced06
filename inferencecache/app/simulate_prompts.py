"""Prompts of simulated requests: questions with a number, and a reader that knows the rest."""

from collections.abc import Sequence

from inferencecache.app.simulate_fleet import MODEL, TENANT
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import ModelRow, WorkerSet
from inferencecache.picker.prompt import NoBlocks, PromptBlocks
from inferencecache.picker.request import Api, InferenceRequest
from inferencecache.simulation import TRACE_BLOCK_TOKENS, FleetRequest

_NO_BODY = Rope()


def question_of(request: FleetRequest) -> Question:
    """Return what the picker is asked for *request*; its number stands for its body."""
    return Question(
        request=InferenceRequest(
            api=Api.COMPLETIONS,
            model=MODEL,
            model_names=(MODEL,),
            model_spans=(),
            is_stream=True,
            output_tokens_max=request.output_tokens,
            prompt_tokens=request.prompt_tokens,
        ),
        content=_NO_BODY,
        tenant=TENANT,
        client_request_id=str(request.number),
    )


class KnownPrompts:
    """A reader for prompts whose blocks are known without their text.

    Args:
        requests: By number.
    """

    def __init__(self, requests: Sequence[FleetRequest]) -> None:
        self._requests = requests

    async def blocks(
        self, question: Question, _worker_set: WorkerSet, _row: ModelRow
    ) -> PromptBlocks | NoBlocks:
        """Return the blocks, as the engines name them."""
        return self._blocks(question)

    async def characters(self, question: Question, _row: ModelRow) -> PromptBlocks | NoBlocks:
        """Return the same blocks, since there are no characters."""
        return self._blocks(question)

    def _blocks(self, question: Question) -> PromptBlocks:
        request = self._requests[int(question.client_request_id)]
        return PromptBlocks(
            hashes=b"".join(request.block_hashes),
            block_tokens=TRACE_BLOCK_TOKENS,
            prompt_tokens=request.prompt_tokens,
            is_exact=True,
        )
