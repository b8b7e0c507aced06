"""Metrics pages as samples, read with the Prometheus client's parser."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from inferencecache.events.engine_metrics import Sample

PAGES = Path(__file__).parents[1] / "data" / "field" / "metrics"


def samples_of(text: str) -> list[Sample]:
    """Return the series of a page; a last line that was cut off is left out."""
    whole = text if text.endswith("\n") else text.rpartition("\n")[0]
    return [
        Sample(name=sample.name, value=sample.value, labels=dict(sample.labels), kind=family.type)
        for family in text_string_to_metric_families(whole)
        for sample in family.samples
    ]


def page(name: str) -> list[Sample]:
    """Return the series of a page in the field data."""
    return samples_of((PAGES / name).read_text(encoding="utf-8"))
