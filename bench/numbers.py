"""What is done with measured times and rates."""

import statistics

Numbers = dict[str, float]


def percentiles(seconds: list[float]) -> Numbers:
    points = statistics.quantiles(seconds, n=100, method="inclusive")
    return {
        "p50_ms": points[49] * 1000, "p95_ms": points[94] * 1000, "p99_ms": points[98] * 1000,
        "times": len(seconds),
    }  # fmt: skip


def per(figure: float, other: float) -> float:
    """The ratio of two figures, which drifts less with the machine than either of them."""
    return figure / other if other else 0.0
