"""The times that a program prints in its own words, such as `Loop time of 1.52 on 4 procs`, `Elapsed: 830 ms`
or a table with the column `t_total`."""

import re
from collections.abc import Iterator

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
_ANY_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_WITH_UNIT = re.compile(rf"(?<![\w.])({_NUMBER})\s*[(\[]?({_ANY_UNIT})\b(?!\s*/)", re.IGNORECASE)
_BRACKETS = re.compile(r"[(\[]([^)\]]*)[)\]]")
_WORD = re.compile(r"\b(?:\w*time\w*|wall\w*|elapsed|duration)\b|\bsec(?:ond)?s?\s*[:=]", re.IGNORECASE)
_RATE = re.compile(
    r"[(\[]\w+(?:/\w+)+[)\]]|flops?\b|/s(?:ec)?\b|/day\b|per second|performance|bandwidth|speed"
    r"|/\s*[\w ]*time\b|\bFOM(?:_|\b)|figure of merit",
    re.IGNORECASE,
)
_ALONE = re.compile(rf"(?<![\w.])({_NUMBER})(?![\w.])")
_LABEL_LENGTH = 32
_TITLE = re.compile(
    rf"(?:t_\w+|(?:\w+_)?time|wall\w*|elapsed|duration|cpu|seconds)(?:[(\[]({'|'.join(_UNITS)})[)\]])?",
    re.IGNORECASE,
)
_RATE_TITLE = re.compile(rf"{_RATE.pattern}|\bperf", re.IGNORECASE)
_LEAST_COLUMNS = 3


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


def masked_lines(lines: list[str]) -> list[str]:
    """The lines, in the order printed, without times and rates, those in columns of tables included."""
    cut = list(lines)
    for row, titles in _rows(lines):
        words = lines[row].split()
        for column, title in enumerate(titles):
            if "." in words[column] and (_TITLE.fullmatch(title) or _RATE_TITLE.search(title)):
                words[column] = "#"
        cut[row] = " ".join(words)
    return [masked(line) for line in cut]


def _rows(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of tables that have a column of times: the number of the line, and the columns' titles.

    Titles are words, as many as the lines below them have. A line with another number of words ends a table.
    """
    titles: list[str] = []
    for at, line in enumerate(lines):
        words = line.split()
        if titles and len(words) == len(titles) and _fits(words, titles):
            yield at, titles
            continue
        words = line.lstrip("#|> ").split()
        names_only = len(words) >= _LEAST_COLUMNS and not any(re.fullmatch(_NUMBER, word) for word in words)
        titles = words if names_only and any(map(_TITLE.fullmatch, words)) else []


def _fits(words: list[str], titles: list[str]) -> bool:
    numbers = [re.fullmatch(_NUMBER, word) is not None for word in words]
    return 2 * sum(numbers) > len(words) and all(
        number for number, title in zip(numbers, titles, strict=True) if _TITLE.fullmatch(title)
    )


def _after(line: str, place: int) -> re.Match | None:
    """The first number with a decimal point. Whole numbers without a unit may be ranks or steps."""
    return next((match for match in _ALONE.finditer(line, place) if "." in match[1]), None)


def _unit_in(title: str) -> float | None:
    """Seconds of the unit in a title such as `Time (ms):`. 1 if it has no brackets, and None if what they
    hold is no unit of time."""
    found = _BRACKETS.search(title)
    return _UNITS.get(found[1].strip().lower()) if found else 1.0


def seconds(lines: list[str]) -> dict[str, float]:
    """Returns {"LABEL [s]": seconds} for the lines that contain a time, and {"TITLE [s]": seconds} for
    columns of times. If several ranks or steps print the same words, the largest time counts. The lines
    are in the order printed."""
    found: dict[str, float] = {}

    def note(label: str, value: float) -> None:
        if value > 0:
            found[f"{label} [s]"] = max(found.get(f"{label} [s]", 0.0), value)

    for line in lines:
        if (told := _told(line)) is not None:
            note(*told)
    for row, titles in _rows(lines):
        for word, title in zip(lines[row].split(), titles, strict=True):
            # Whole numbers may be steps or ranks.
            if "." in word and (match := _TITLE.fullmatch(title)):
                note(re.split(r"[(\[]", title)[0], float(word) * _UNITS[(match[1] or "s").lower()])
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
        if word is None or match is None or _RATE.search(line):
            return None
        unit = _unit_in(line[word.end() : match.start()])
        if unit is None:
            return None
        value = float(match[1]) * unit
    label = " ".join(re.sub(_NUMBER, "#", line[: match.start()]).split()).rstrip(" :=|").lstrip("#|> ")
    return (label[:_LABEL_LENGTH], value) if label and value > 0 else None
