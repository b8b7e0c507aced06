"""Small real tokenizers, made as models bring them: a directory with a few files."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from xxhash import xxh3_64_intdigest

from inferencecache.picker.prompt.blocks import PromptBlocks

TEXTS = (
    "The prefix index tells gateways where a prompt is warm.",
    "A worker that has computed a block need not compute it again, and answers sooner.",
    "Agents send their whole history with every request: tools, turns and results of calls.",
    "def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)",
    "Grüße aus München, 東京 und Αθήνα, mit ½ Liter Öl.",
)
BOS, EOS, TURN = "<|begin|>", "<|end|>", "<|turn|>"
SPECIAL = (BOS, EOS, TURN)
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{%- if tools %}{{ TURN }}tools\n{{ tools | tojson }}{{ eos_token }}{% endif %}"
    "{%- for message in messages %}"
    "{{ '<|turn|>' + message.role + '\n' + message.content + eos_token }}"
    "{%- for call in message.tool_calls or [] %}"
    "{{ '<|turn|>' + call.function.name + call.function.arguments | tojson }}"
    "{%- endfor %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|turn|>assistant\n' }}{% endif %}"
).replace("{{ TURN }}", "<|turn|>")


def trained() -> Tokenizer:
    """Return byte-level BPE trained on a few lines, which begins texts with a token of its own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        show_progress=False,
        special_tokens=[AddedToken(token, special=True) for token in SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
    )
    return tokenizer


def write_tokenizer(
    directory: Path, tokenizer: Tokenizer | None = None, **config: object
) -> Tokenizer:
    """Write a tokenizer into *directory* and return it.

    Args:
        directory: Made if it is not there.
        tokenizer: Which; one that is trained here if left out.
        config: Of ``tokenizer_config.json``, beside the special tokens and a template.
    """
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer or trained()
    tokenizer.save(str(directory / "tokenizer.json"))
    whole = {
        "bos_token": BOS,
        "eos_token": {"content": EOS, "special": True},
        "chat_template": CHAT_TEMPLATE,
        **config,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(whole))
    return tokenizer


def plain_hashes(token_ids: list[int], block_tokens: int) -> bytes:
    """Return the hashes of the whole blocks, told again without anything of the product."""
    hashes = b""
    previous = None
    for start in range(0, len(token_ids) // block_tokens * block_tokens, block_tokens):
        block = token_ids[start : start + block_tokens]
        content = xxh3_64_intdigest(b"".join(i.to_bytes(4, "little") for i in block), seed=1337)
        if previous is not None:
            pair = previous.to_bytes(8, "little") + content.to_bytes(8, "little")
            content = xxh3_64_intdigest(pair, seed=1337)
        previous = content
        hashes += previous.to_bytes(8, "big")
    return hashes


def plain_blocks(token_ids: list[int], block_tokens: int) -> PromptBlocks:
    """Return what a reader must say of these tokens."""
    return PromptBlocks(
        hashes=plain_hashes(token_ids, block_tokens),
        block_tokens=block_tokens,
        prompt_tokens=len(token_ids),
        is_exact=True,
    )
