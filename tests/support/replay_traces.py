"""Small traces for the replay's tests."""

import json
import random
from pathlib import Path


def write_trace(path: Path, requests: list[tuple[int, int, list[int]]]) -> Path:
    """Write ``(timestamp_ms, input_length, hash_ids)`` rows as a trace."""
    lines = [
        json.dumps(
            {
                "timestamp": timestamp_ms,
                "input_length": input_length,
                "output_length": 1,
                "hash_ids": hash_ids,
            }
        )
        for timestamp_ms, input_length, hash_ids in requests
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def hand_trace(path: Path) -> Path:
    """Write four requests, three of which share two full blocks."""
    rows = [(1_100, [1, 2, 3]), (1_100, [1, 2, 4]), (600, [9, 10]), (1_536, [1, 2, 5])]
    return write_trace(path, [(0, tokens, hash_ids) for tokens, hash_ids in rows])


def conversations(path: Path, count: int, seed: int = 7, gap_ms: int = 0) -> Path:
    """Write turns of interleaved conversations behind one system prompt."""
    rng = random.Random(seed)
    next_id = 1
    histories: list[list[int]] = []
    rows: list[tuple[int, int, list[int]]] = []
    for number in range(count):
        if not histories or rng.random() < 0.3:
            histories.append([0])
        history = rng.choice(histories)
        grown = rng.randint(1, 4)
        history.extend(range(next_id, next_id + grown))
        next_id += grown
        tail = rng.randint(1, 512)
        rows.append((number * gap_ms, (len(history) - 1) * 512 + tail, list(history)))
    return write_trace(path, rows)
