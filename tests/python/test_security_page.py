"""docs/security.md: every attack that it says is stopped has a test that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _rows() -> list[tuple[str, list[str]]]:
    """The attacks of the page, each with the names of its tests."""
    rows = []
    for line in (ROOT / "docs/security.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 3 and line.startswith("| ") and cells[0] not in ("attack", "---"):
            rows.append((cells[0], re.findall(r"`([^`]+)`", cells[2])))
    return rows


def _tests() -> set[str]:
    """The cases of GoogleTest and the names of ctest."""
    found = set()
    for path in (ROOT / "tests").rglob("*.cpp"):
        found |= {
            ".".join(case) for case in re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", path.read_text(), re.M)
        }
    for path in (ROOT / "tests").rglob("CMakeLists.txt"):
        found |= set(re.findall(r"add_test\(NAME (\S+)", path.read_text()))
    return found


def test_every_attack_has_a_test_that_exists() -> None:
    rows, tests = _rows(), _tests()
    assert len(rows) > 30
    assert [attack for attack, names in rows if not names] == []
    missing = {name for _, names in rows for name in names} - tests
    # A loop in a CMakeLists.txt adds tests whose names differ in a variable.
    loops = [re.sub(r"\\\$\\{\w+\\}", r"\\w+", re.escape(name)) for name in tests if "${" in name]
    assert sorted(name for name in missing if not any(re.fullmatch(loop, name) for loop in loops)) == []


def test_the_fuzzers_of_the_page_are_those_that_are_built() -> None:
    page = set(re.findall(r"`(fuzz-[a-z-]+)`", (ROOT / "docs/security.md").read_text()))
    built = set(re.findall(r"^offpath_fuzz\((\S+)", (ROOT / "tests/fuzz/CMakeLists.txt").read_text(), re.M))
    assert page == built
