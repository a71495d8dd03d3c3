"""The page of which lines the tests reach (scripts/coverage_page.py)."""

import json
import subprocess
import sys

from conftest import SOURCE_ROOT


def test_lines_are_counted_by_room_and_the_least_covered_comes_first(tmp_path):
    files = [
        {"filename": "src/link/a.cpp", "line_covered": 9, "line_total": 10},
        {"filename": "src/link/deep/b.h", "line_covered": 0, "line_total": 10},
        {"filename": "frontends/mpi/p2p/c.cpp", "line_covered": 1, "line_total": 4},
        {"filename": "frontends/trace/d.cpp", "line_covered": 3, "line_total": 3},
    ]
    summary, page = tmp_path / "summary.json", tmp_path / "page.md"
    summary.write_text(json.dumps({"files": files}))
    script = SOURCE_ROOT / "scripts/coverage_page.py"
    done = subprocess.run([sys.executable, script, summary, page], capture_output=True, text=True, check=True)
    assert [line for line in page.read_text().splitlines() if line.startswith("| ")][2:] == [
        "| `frontends/mpi/p2p` | 4 | 3 | 25.0 % |",
        "| `src/link` | 20 | 11 | 45.0 % |",
        "| `frontends/trace` | 3 | 0 | 100.0 % |",
        "| all | 27 | 14 | 48.1 % |",
    ]
    assert done.stdout.splitlines()[0] == " 25.0 %  frontends/mpi/p2p"
