"""The check of the documentation's site finds planted errors, in its links and in what a browser shows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import browser
from conftest import SOURCE_ROOT

# The least that shows what the check looks for.
INDEX = """<h1>offpath</h1><nav><a class="md-nav__link" href="variables.html">Environment variables</a></nav>
<table><tr><td><a href="/variables.html#OFFPATH_ENCRYPT">docs/tutorial.md</a></td></tr></table>"""
VARIABLES = """<h1>Environment variables</h1><img src="a%20picture.png?1" srcset="a%20picture.png 1x" alt="">
<table><tr><td id="OFFPATH_ENCRYPT"><code>OFFPATH_ENCRYPT</code></td></tr></table><a href=".">start</a>
<p class="md-search-result__meta">1 matching document</p>
<a class="md-search-result__link" href="https://example.org/absent"><h1>Environment variables</h1></a>"""

needs_browser = pytest.mark.skipif(not browser.program(), reason="no Chromium is there")


def make(site: Path, index: str = INDEX, variables: str = VARIABLES, found: str = "index.html") -> None:
    (site / "search").mkdir()
    (site / "search/search_index.json").write_text(json.dumps({"docs": [{"location": found}]}))
    (site / "a picture.png").write_bytes(b"")
    (site / "index.html").write_text(f"<link rel='icon' href='a%20picture.png'>{index}")
    (site / "variables.html").write_text(f"<link rel='icon' href='a%20picture.png'>{variables}")


def wrong(site: Path, seconds: int) -> list[str]:
    """What the check says is wrong."""
    done = subprocess.run(
        [sys.executable, SOURCE_ROOT / "scripts/check_site.py", site, str(seconds)],
        env={**os.environ, "PYTHONPATH": str(SOURCE_ROOT / "tests/python")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == (1 if done.stderr else 0), done.stderr
    return [line.removeprefix("check_site.py: ") for line in done.stderr.splitlines()]


def test_names_links_images_and_results_that_lead_nowhere(tmp_path: Path) -> None:
    dead = '<a href="#absent">1</a><a href="away.html#x">2</a><img src="no.png"><a href="../out.html">3</a>'
    (tmp_path / "out.html").write_text("")
    site = tmp_path / "site"
    site.mkdir()
    make(site, index=INDEX + dead, found="variables.html#absent")
    found = {line for line in wrong(site, 0) if ": no such " in line}
    assert found == {
        "index.html: #absent: no such anchor",
        "index.html: away.html#x: no such file",
        "index.html: no.png: no such file",
        "index.html: ../out.html: no such file",
        "search/search_index.json: /variables.html#absent: no such anchor",
    }


@needs_browser
def test_accepts_a_site_that_shows_what_it_should(tmp_path: Path) -> None:
    make(tmp_path)
    assert wrong(tmp_path, 60) == []


@needs_browser
def test_names_what_a_page_hides_and_the_errors_of_its_scripts(tmp_path: Path) -> None:
    hidden = INDEX.replace("<table>", "<table style='display: none'>")
    make(tmp_path, index=hidden, variables=VARIABLES + "<script>absent()</script>")
    said = wrong(tmp_path, 2)
    assert said[0] == r"index.html: shows no td a with ^docs/tutorial\.md$"
    assert "absent is not defined" in said[1]
    assert len(said) == 2
