"""Settings whose names are taken, and that are refused for as long as they would do nothing.

A flag that is accepted and ignored is worse than an error, most of all one that promises safety.
"""

from typing import Final

REFUSED: Final = {
    "tokenizer-models-dir": "the server cannot tokenize yet; prompt_text is answered with NO_HINT",
}
"""Flag without dashes -> why it is refused."""
