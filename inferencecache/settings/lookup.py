"""Settings of LookupRoute's input: what may be asked and how much work one question may cause."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """How token ids and prompt texts become a chain of block hashes."""

    block_size_tokens: int = knob(
        16,
        flag="engine-block-size",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=1_048_576,
        help="Tokens per KV block of the engines; token ids are cut into blocks of this size.",
    )
    token_ids_max: int = knob(
        1_048_576,
        flag="max-lookup-tokens",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        help="Most token ids one lookup may carry or its prompt may become; more fails open.",
    )
    chain_blocks_max: int = knob(
        131_072,
        flag="max-lookup-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks",
        minimum=1,
        help="Most blocks of a chain that one lookup takes into account; the rest is ignored.",
    )
    prompt_text_bytes_max: int = knob(
        1_048_576,
        flag="max-prompt-text-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes of UTF-8",
        minimum=1,
        help="Longest prompt_text that is tokenized; a longer one fails open.",
    )
    tokenizations_max: int = knob(
        64,
        flag="max-concurrent-tokenizations",
        kind=KnobKind.INTEGER,
        unit="prompts",
        minimum=1,
        help="Prompts tokenized at one time, abandoned ones included; one more fails open.",
    )
    tokenizer_models_dir: str = knob(
        "",
        flag="tokenizer-models-dir",
        kind=KnobKind.TEXT,
        help="Directory with a tokenizer for each model, under its name, for prompt_text; empty "
        "fails it open.",
    )
    tokenize_threads_max: int = knob(
        2,
        flag="tokenize-threads",
        kind=KnobKind.INTEGER,
        unit="threads",
        minimum=1,
        maximum=256,
        help="Most prompt_texts that are tokenized at a time.",
    )
    tokenize_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="tokenize-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=1_000_000,
        help="Time for a lookup with prompt_text when neither caller nor policy sets any.",
    )
    slice_blocks: int = knob(
        1_024,
        flag="fingerprint-slice-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks",
        minimum=1,
        help="Blocks of a prompt hashed before a lookup gives the event loop back.",
    )
    match_slice_blocks: int = knob(
        2_048,
        flag="lookup-slice-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks",
        minimum=1,
        help="Blocks of a chain matched before a lookup gives the event loop back.",
    )
    long_message_bytes: int = knob(
        65_536,
        flag="long-lookup-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Longest lookup, as a message, that is read as soon as it comes; one that is longer "
        "waits for its turn, as one of several slices does after the first.",
    )
    waiting_max: int = knob(
        64,
        flag="max-waiting-lookups",
        kind=KnobKind.INTEGER,
        unit="lookups",
        minimum=1,
        help="Long lookups that wait for their turn; one more fails open.",
    )
