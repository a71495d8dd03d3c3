"""Every link between pages leads to a page, and to a title on it."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """The Markdown pages that git knows, or would add."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split()]


def anchors(page: Path) -> set[str]:
    """The anchors of the titles, as GitHub and MkDocs make them."""
    found: set[str] = set()
    for title in re.findall(r"^#{1,6} +(.*?) *$", _CODE.sub("", page.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 0
        while (one := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(one)
    return found


def test_links_lead_somewhere():
    dead = []
    for page in pages():
        for target in _LINK.findall(_CODE.sub("", page.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if not path.exists():
                dead.append(f"{page.relative_to(ROOT)}: {target}: no such file")
            elif anchor and path.suffix == ".md" and anchor not in anchors(path):
                dead.append(f"{page.relative_to(ROOT)}: {target}: no such title")
    assert not dead, "\n".join(dead)


def test_every_page_can_be_reached_from_the_readme():
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        for target in _LINK.findall(page.read_text()):
            path = (page.parent / target.partition("#")[0]).resolve()
            if path.suffix == ".md" and path.exists():
                todo.append(path)
    lost = [
        str(page.relative_to(ROOT)) for page in pages() if page.parent == ROOT / "docs" and page not in seen
    ]
    assert not lost, f"no link from the README leads to {', '.join(lost)}"


def test_the_site_has_all_pages_with_links_of_its_own(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "command.md").write_text("# `offpath`\n\nthe host&#x27;s cores\n")
    script = [sys.executable, ROOT / "scripts/site_pages.py", tmp_path]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    named = json.loads((tmp_path / "mkdocs.yml").read_text())["nav"]
    made = {page.name for page in (tmp_path / "pages").iterdir()}
    assert made == set(re.findall(r"[\w-]+\.md", json.dumps(named)))
    for page in (tmp_path / "pages").iterdir():
        if page.name.startswith("header-"):
            continue
        for target in _LINK.findall(_CODE.sub("", page.read_text())):
            assert re.match(r"[a-z]+:|#", target) or target.partition("#")[0] in made, (
                f"{page.name}: {target}"
            )
    assert "the host's cores" in (tmp_path / "pages/command.md").read_text()
