"""Settings of how the picker turns prompts into blocks."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob

_KIB = 1_024
_MIB = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerPromptSettings:
    """How long a prompt may be, how long its tokens may take, and what is remembered."""

    body_bytes_max: int = knob(
        8 * _MIB,
        flag="picker-prompt-max-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Bodies above this are chosen for without looking at their prompt.",
    )
    character_bytes_max: int = knob(
        512 * _KIB,
        flag="picker-prompt-max-character-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=256,
        help="How much of a prompt becomes blocks of characters.",
    )
    inline_bytes_max: int = knob(
        2 * _KIB,
        flag="picker-tokenize-inline-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Prompts up to this are tokenized at once, longer ones in a thread.",
    )
    token_ids_inline_bytes_max: int = knob(
        64 * _KIB,
        flag="picker-token-ids-inline-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Bodies of token ids, and those of which characters are compared, up to this are "
        "hashed at once, longer ones in a thread.",
    )
    timeout_ns: int = knob(
        NS_PER_S,
        flag="picker-tokenize-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest that a Pick waits for its tokens.",
    )
    threads_max: int = knob(
        2,
        flag="picker-tokenize-threads",
        kind=KnobKind.INTEGER,
        unit="threads",
        minimum=1,
        maximum=256,
        help="Most prompts that are tokenized at a time.",
    )
    waiting_max: int = knob(
        64,
        flag="picker-tokenize-max-waiting",
        kind=KnobKind.INTEGER,
        unit="prompts",
        minimum=1,
        help="Most prompts on their way to tokens, here or at engines; others go without at once.",
    )
    rendered_characters_max: int = knob(
        16 * _MIB,
        flag="picker-template-max-characters",
        kind=KnobKind.INTEGER,
        unit="characters",
        minimum=1,
        help="Longest prompt that a chat template may write.",
    )
    template_steps_max: int = knob(
        200_000,
        flag="picker-template-max-steps",
        kind=KnobKind.INTEGER,
        unit="steps",
        minimum=1,
        help="Most turns of loops and calls that a chat template may take to write a prompt; of a "
        "shorter one 2,000 and one for each byte of its body.",
    )
    cache_bytes_max: int = knob(
        64 * _MIB,
        flag="picker-prompt-cache-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Most bytes of block hashes that are remembered to be told again; 0 remembers none.",
    )
    history_bytes_max: int = knob(
        64 * _MIB,
        flag="picker-prompt-history-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Most bytes of block hashes of conversations that may go on, so that only what is new "
        "is tokenized; 0 remembers none.",
    )
    tokenizers_max: int = knob(
        16,
        flag="picker-max-tokenizers",
        kind=KnobKind.INTEGER,
        unit="tokenizers",
        minimum=1,
        help="Most tokenizers in memory; the one unused for longest goes first.",
    )
    reload_check_ns: int = knob(
        5 * NS_PER_S,
        flag="picker-tokenizer-reload-check",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How often the files of a tokenizer in use are looked at.",
    )
    file_bytes_max: int = knob(
        256 * _MIB,
        flag="picker-tokenizer-max-file-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Largest file of a tokenizer.",
    )
    answer_bytes_max: int = knob(
        16 * _MIB,
        flag="picker-tokenize-max-answer-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Longest list of tokens, as written, that is taken from an engine.",
    )
    log_interval_ns: int = knob(
        60 * NS_PER_S,
        flag="picker-tokenize-log-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Shortest time between two lines about the same failure of the same worker set.",
    )
