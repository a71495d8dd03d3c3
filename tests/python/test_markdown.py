"""The check of Markdown's line lengths, and the pages of this tree."""

import subprocess
import sys
from pathlib import Path

from conftest import SOURCE_ROOT


def check(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SOURCE_ROOT / "scripts/check_markdown.py"), *map(str, files)]
    return subprocess.run(command, cwd=SOURCE_ROOT, capture_output=True, text=True)


def test_names_long_lines_outside_of_tables_and_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = "word " * 30
    page.write_text(f"short\n{long}\n| {long} |\n```\n{long}\n```\n- {long}\n", encoding="utf-8")
    result = check(page)
    assert result.returncode == 1
    named = [line.removeprefix(f"{page}:") for line in result.stderr.splitlines()]
    assert named == ["2: more than 100 columns", "7: more than 100 columns"]


def test_all_pages_keep_to_it() -> None:
    result = check()
    assert result.returncode == 0, result.stderr


def test_the_tutorial_shows_the_program_that_is_tested() -> None:
    page = (SOURCE_ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    program = (SOURCE_ROOT / "examples/overlap.c").read_text(encoding="utf-8")
    assert f"```c\n{program}```" in page
