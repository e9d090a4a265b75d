"""What a server counts, for Prometheus."""

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE

__all__ = ["CONTENT_TYPE", "Metrics"]
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server; ``waiting`` tells how many texts wait."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        here: dict[str, Any] = {"registry": self._registry}
        seconds = "Seconds from a request to its answer."
        self.requests = Counter("cohegraph_requests", "Requests answered.", ("route", "status"), **here)
        self.seconds = Histogram("cohegraph_request_seconds", seconds, ("route",), buckets=_SECONDS, **here)
        self.texts = Counter("cohegraph_texts", "Texts scored.", **here)
        self.batches = Histogram("cohegraph_batch_texts", "Texts scored together.", buckets=_SIZES, **here)
        Gauge("cohegraph_waiting_texts", "Texts that are not yet answered.", **here).set_function(waiting)

    def on_batch(self, size: int) -> None:
        """Count a batch."""
        self.texts.inc(size)
        self.batches.observe(size)

    def page(self) -> bytes:
        """All counters as text."""
        return generate_latest(self._registry)
