"""site_pages.py DIR: writes the pages of the documentation's site below DIR, and its mkdocs.yml.

The pages are those of the repository, with their links turned to the site's. Added are the reference of the
command, which DIR/command.md holds, and the headers of the C API."""

import html
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"\]\(([^)\s]+)\)")

# What readers come for, in the order in which they need it. A page of docs/ that is not here fails the build.
SECTIONS: dict[str, list[str]] = {
    "Start": ["README.md", "docs/tutorial.md", "docs/install.md", "docs/lab.md", "docs/performance.md"],
    "How to": [
        "docs/mpi.md", "docs/slurm.md", "docs/openshmem.md", "docs/openmp.md", "docs/bluefield.md",
        "docs/device-ranks.md", "docs/tuning.md", "docs/top.md", "docs/trace.md", "docs/report.md",
        "docs/advise.md", "docs/soak.md", "docs/aarch64.md", "docs/troubleshooting.md",
    ],
    "Applications": ["docs/bspmm.md", "docs/minimd.md", "apps/minimd/README.md", "apps/halo/README.md"],
    "Reference": ["docs/variables.md", "docs/api.md", "docs/daemon.md", "docs/compatibility.md"],
    "How it works": [
        "docs/architecture.md", "docs/point-to-point.md", "docs/schedules.md", "docs/transport.md",
        "docs/memory.md", "docs/security.md", "docs/fault-campaign.md",
    ],
    "Prediction": ["docs/models.md", "docs/simulation.md", "docs/reproduction.md"],
    "Project": ["CONTRIBUTING.md", "docs/coverage.md", "SECURITY.md", "CHANGELOG.md"],
}  # fmt: skip
# Pages with a name of their own on the site. Two pages of the repository are called security.
NAMES = {"README.md": "index.md", "SECURITY.md": "security-policy.md"}


def place(page: str) -> str:
    """Where a page of the repository is on the site."""
    if page in NAMES:
        return NAMES[page]
    if page.startswith("apps/"):
        return f"app-{Path(page).parent.name}.md"
    return Path(page).name.lower() if "/" not in page else Path(page).name


PLACES = {page: place(page) for pages in SECTIONS.values() for page in pages}


def turned(page: str, text: str) -> str:
    """The page's text with links to pages of the site. A link to another file becomes the file's name."""

    def link(match: re.Match) -> str:
        target, _, anchor = match[1].partition("#")
        if re.match(r"[a-z]+:", match[1]) or not target:
            return match[0]
        path = ((ROOT / page).parent / target).resolve().relative_to(ROOT).as_posix()
        if path in PLACES:
            return f"]({PLACES[path]}{'#' + anchor if anchor else ''})"
        return f"] (`{path}`)"

    return re.sub(r"\[([^\]]*)\] \((`[^`]*`)\)", r"\1 (\2)", _LINK.sub(link, text))


def headers() -> dict[str, str]:
    """A page for each header of the C API, with its text."""
    pages = {}
    for header in sorted((ROOT / "include").rglob("*.h")):
        name = header.relative_to(ROOT / "include").as_posix()
        pages[f"header-{name.replace('/', '-').removesuffix('.h')}.md"] = (
            f"# `{name}`\n\n```c\n{header.read_text().rstrip()}\n```\n"
        )
    return pages


def main() -> int:
    where = Path(sys.argv[1])
    left_out = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} - PLACES.keys()
    if left_out:
        print(f"site_pages.py: SECTIONS lacks {', '.join(sorted(left_out))}", file=sys.stderr)
        return 1
    places = list(PLACES.values())
    if taken := {name for name in places if places.count(name) > 1}:
        print(f"site_pages.py: several pages would be {', '.join(sorted(taken))}", file=sys.stderr)
        return 1
    for page, name in PLACES.items():
        (where / "pages" / name).write_text(turned(page, (ROOT / page).read_text()))
    (where / "pages/command.md").write_text(html.unescape((where / "command.md").read_text()))
    of_headers = headers()
    for name, text in of_headers.items():
        (where / "pages" / name).write_text(text)
    nav: list[dict] = [{section: [PLACES[page] for page in pages]} for section, pages in SECTIONS.items()]
    for entry in nav:
        if "Reference" in entry:
            entry["Reference"] += ["command.md", {"Headers of the C API": list(of_headers)}]
    settings = {
        "site_name": "offpath",
        "site_description": "Communication and computation off the host cores of HPC programs",
        "docs_dir": "pages",
        "nav": nav,
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.sections", "search.suggest", "content.code.copy"],
        },
        "plugins": ["search"],
        "markdown_extensions": [
            "tables",
            "pymdownx.highlight",
            "pymdownx.superfences",
            {"toc": {"permalink": True}},
        ],
        "validation": {"links": {"anchors": "warn", "not_found": "warn"}, "nav": {"omitted_files": "warn"}},
        "use_directory_urls": False,
    }
    # JSON is YAML.
    (where / "mkdocs.yml").write_text(json.dumps(settings, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
