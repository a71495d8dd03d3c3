"""What daemons held between the runs of a soak, and how fast it grew."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

# Successive samples are alike, because a daemon keeps a pool that it once had to enlarge. A fit to single
# samples would therefore claim too small an error. The fit is to the means of so many equal spans of time.
_SPANS = 10
# Half of the 95 % interval, in standard errors, by degrees of freedom of the fit (Student's t).
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31}


@dataclass(frozen=True)
class Sample:
    """What a daemon held between two runs."""

    run: int
    resident_bytes: int  # private and shared memory, without pages of files
    descriptors: int
    threads: int
    at_s: float = 0.0  # since the soak began


@dataclass
class Life:
    """One daemon, from its start to its end."""

    node: str
    pid: int
    samples: list[Sample] = field(default_factory=list)


def growth(lives: list[Life], runs: int) -> list[dict]:
    """How much memory and descriptors grew from the first sample of a daemon to its last, and their slopes,
    for daemons that lived for at least `runs` runs."""
    found = []
    for life in lives:
        if len(life.samples) < max(2, runs):
            continue
        first, last = life.samples[0], life.samples[-1]
        memory, memory_error = per_hour(life.samples, lambda sample: sample.resident_bytes)
        descriptors, descriptors_error = per_hour(life.samples, lambda sample: sample.descriptors)
        found.append(
            {
                "node": life.node,
                "first_run": first.run,
                "last_run": last.run,
                "seconds": last.at_s - first.at_s,
                "resident_bytes": [first.resident_bytes, last.resident_bytes],
                "descriptors": [first.descriptors, last.descriptors],
                "threads": [first.threads, last.threads],
                "bytes_per_hour": memory,
                "bytes_per_hour_error": memory_error,
                "descriptors_per_hour": descriptors,
                "descriptors_per_hour_error": descriptors_error,
            }
        )
    return found


def longest(found: list[dict]) -> list[dict]:
    """Of what `growth` returned, the daemon of each node that lived longest."""
    nodes = dict.fromkeys(each["node"] for each in found)
    return [
        max((each for each in found if each["node"] == node), key=lambda each: each["seconds"])
        for node in nodes
    ]


def second_half(samples: list[Sample]) -> list[Sample]:
    """The samples of the second half of a daemon's life. Before, it fills its pools."""
    middle = (samples[0].at_s + samples[-1].at_s) / 2
    return [sample for sample in samples if sample.at_s >= middle]


def per_hour(samples: list[Sample], value: Callable[[Sample], int]) -> tuple[float | None, float | None]:
    """The slope over the second half of the samples, and half of its 95 % interval. None: too short."""
    points = _means(second_half(samples), value)
    if len(points) < 2:
        return None, None
    times, values = zip(*points, strict=True)
    slope, intercept = statistics.linear_regression(times, values)
    freedom = len(points) - 2
    if freedom < 1:
        return slope, None
    off = sum((v - intercept - slope * t) ** 2 for t, v in points)
    mean = statistics.fmean(times)
    error = math.sqrt(off / freedom / sum((t - mean) ** 2 for t in times))
    return slope, _STUDENT[freedom] * error


def _means(samples: list[Sample], value: Callable[[Sample], int]) -> list[tuple[float, float]]:
    """The mean time in hours and the mean value of each span that has samples."""
    begin, length = samples[0].at_s, samples[-1].at_s - samples[0].at_s
    spans: dict[int, list[Sample]] = {}
    for sample in samples:
        span = min(int((sample.at_s - begin) / length * _SPANS), _SPANS - 1) if length > 0 else 0
        spans.setdefault(span, []).append(sample)
    return [
        (statistics.fmean(s.at_s for s in span) / 3600, statistics.fmean(map(value, span)))
        for span in spans.values()
    ]
