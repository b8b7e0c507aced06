"""What one candidate was given by this picker and has not finished."""

from typing import Final, NamedTuple


class CandidateLoad(NamedTuple):
    """A load; no part of it is ever negative.

    Attributes:
        requests: Given to it and not ended.
        prefill_tokens: Tokens that those of them must compute whose first token is to come.
        decode_tokens: Most tokens that their answers may have, of those that say a limit.
    """

    requests: int
    prefill_tokens: int
    decode_tokens: int


IDLE: Final = CandidateLoad(0, 0, 0)
