"""What can be said of an accepted member besides that it is accepted."""

from enum import StrEnum


class Qualifier(StrEnum):
    """Follows the first word of a state; the order here is the order there."""

    BACKEND_UNRESOLVED = "BackendUnresolved"
    """Callers cannot find the provider's backend."""
    BACKEND_UNAUTHORIZED = "BackendUnauthorized"
    """The provider refuses the key that the backend holds."""
    INDEX_COLD = "IndexCold"
    """The index has never heard of any worker of the set."""
    TOKENIZER_MISSING = "TokenizerMissing"
    """The set's tokenizer cannot be read, so prompts are not hashed as its engines hash them."""
    TOKENIZER_SUSPECT = "TokenizerSuspect"
    """None of the set's engines caches what the index says: prompts are hashed in another way."""
    SUPPRESSED = "Suppressed"
    """Repeated failures have taken it out for a while."""
