"""Made-up chats, and a small real tokenizer for them.

Byte-level BPE of 30,000 tokens, trained on made-up words, rare and frequent ones, and a chat
template with a special token before each turn. The same for the same seed.
"""

import json
import random
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers

_TURN = "<|turn|>"
_TEMPLATE = (
    "{% for turn in messages %}{{ '<|turn|>' + turn.role + '\n' + turn.content }}{% endfor %}"
    "{{ '<|turn|>assistant\n' }}"
)
_VOCABULARY = 30_000


class Texts:
    """Made-up words, rare and frequent ones.

    Args:
        rng: Makes them up.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        letters = "eeeettaaooiinnsshhrrddlu"
        self._words = ["".join(rng.choices(letters, k=rng.randint(1, 6))) for _ in range(30_000)]
        self._weights = [1 / place for place in range(1, len(self._words) + 1)]

    def of(self, words: int) -> str:
        """Return so many words of text."""
        return " ".join(self._rng.choices(self._words, self._weights, k=words))


def write_tokenizer(directory: Path, texts: Texts) -> None:
    """Train a tokenizer on *texts* and write it, with a chat template, to *directory*."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        show_progress=False,
        special_tokens=[AddedToken(_TURN, special=True)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator((texts.of(200) for _ in range(1_000)), trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": _TEMPLATE}))


def chat_body(turns: list[str]) -> bytes:
    """Return a request that says *turns*, the user's first, to model ``m``."""
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": turn} for number, turn in enumerate(turns)]
    return json.dumps({"model": "m", "messages": messages, "stream": True}).encode()
