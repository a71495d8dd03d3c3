"""The times that a program prints in its own words, such as `Loop time of 1.52 on 4 procs` or `Elapsed: 830
ms`."""

import re

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_UNITS = {
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "msec": 1e-3,
    "us": 1e-6,
    "usec": 1e-6,
    "min": 60.0,
    "minutes": 60.0,
}
_WITH_UNIT = re.compile(
    rf"(?<![\w.])({_NUMBER})\s*({'|'.join(sorted(_UNITS, key=len, reverse=True))})\b(?!\s*/)", re.IGNORECASE
)
_WORD = re.compile(r"\b(?:\w*time\w*|wall\w*|elapsed|duration)\b|\bsec(?:ond)?s?\s*[:=]", re.IGNORECASE)
_RATE = re.compile(r"flops?\b|/s(?:ec)?\b|/day\b|per second|performance|bandwidth|speed", re.IGNORECASE)
_ALONE = re.compile(rf"(?<![\w.])({_NUMBER})(?![\w.])")
_LABEL_LENGTH = 32


def masked(line: str) -> str:
    """The line without times and rates, which differ from run to run and are not results."""
    if _RATE.search(line):
        return " ".join(re.sub(_NUMBER, "#", line).split())
    places = [match.span(1) for match in _WITH_UNIT.finditer(line)]
    places += [
        time.span(1) for word in _WORD.finditer(line) if (time := _after(line, word.end())) is not None
    ]
    for start, end in sorted(set(places), reverse=True):
        line = line[:start] + "#" + line[end:]
    return " ".join(line.split()) if places else line.rstrip()


def _after(line: str, place: int) -> re.Match | None:
    """The first number with a decimal point. Whole numbers without a unit may be ranks or steps."""
    return next((match for match in _ALONE.finditer(line, place) if "." in match[1]), None)


def seconds(lines: list[str]) -> dict[str, float]:
    """Returns {"LABEL [s]": seconds} for the lines that contain a time. If several ranks or steps print the
    same words, the largest time counts."""
    found: dict[str, float] = {}
    for line in lines:
        if (told := _told(line)) is not None:
            name = f"{told[0]} [s]"
            found[name] = max(found.get(name, 0.0), told[1])
    return found


def _told(line: str) -> tuple[str, float] | None:
    match = _WITH_UNIT.search(line)
    if match is not None and match[2].lower() == "min" and not _WORD.search(line):
        match = None  # a minimum, as in "819.0 ave 830 max 811 min"
    if match is not None:
        value = float(match[1]) * _UNITS[match[2].lower()]
    else:
        word = _WORD.search(line)
        match = word and _after(line, word.end())
        if match is None or _RATE.search(line):
            return None
        value = float(match[1])
    label = " ".join(re.sub(_NUMBER, "#", line[: match.start()]).split()).rstrip(" :=|").lstrip("#|> ")
    return (label[:_LABEL_LENGTH], value) if label and value > 0 else None
