"""The cache plane for LLM fleets: where is a prompt's KV cache warm?"""

__version__ = "0.1.0"
