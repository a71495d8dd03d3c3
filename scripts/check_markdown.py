"""check_markdown.py [FILE...]: names lines of Markdown with more than 100 columns, except in tables and code.

Without files it checks all that git knows. The exit code is 1 if there is such a line.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

COLUMNS = 100


def long_lines(text: str) -> Iterator[int]:
    """The numbers of the lines that are too long."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and len(line) > COLUMNS and not line.lstrip().startswith("|"):
            yield number


def main() -> int:
    files = sys.argv[1:]
    if not files:
        listed = subprocess.run(["git", "ls-files", "-z", "*.md"], check=True, capture_output=True, text=True)
        files = [file for file in listed.stdout.split("\0") if Path(file).is_file()]
    found = False
    for file in files:
        for number in long_lines(Path(file).read_text(encoding="utf-8")):
            print(f"{file}:{number}: more than {COLUMNS} columns", file=sys.stderr)
            found = True
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
