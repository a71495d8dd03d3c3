"""check_site.py DIR [SECONDS]: checks the site that `make docs` builds in DIR (`make docs-check`).

Every link, image, script and style sheet of a page, and every result of the search, must lead to a file of
the site and to an anchor that is there. Two pages are then opened in a headless browser, which fetches the
site from a web server on the loopback interface: the start page, and a page with a table and a search. Once
loaded, each has SECONDS (60) to show what it should. Names what is wrong, and exits with 1."""

import functools
import http.server
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import browser  # tests/python/browser.py

_ADDRESSES = {"href", "src", "srcset", "data", "poster"}


class Page(HTMLParser):
    """The addresses that a page names, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors = {"", "top"}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value or "")
            elif name == "srcset":
                self.addresses += [one.split()[0] for one in (value or "").split(",") if one.strip()]
            elif name in _ADDRESSES:
                self.addresses.append(value or "")


def dead_links(site: Path) -> Iterator[str]:
    """A line for each address that leads nowhere."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no page"
    named = [(page, address) for page, found in pages.items() for address in found.addresses]
    index = site / "search/search_index.json"
    if index.exists():
        # The script of the search takes these from the top of the site.
        named += [(index, f"/{entry['location']}") for entry in json.loads(index.read_text())["docs"]]
    else:
        yield f"{index.relative_to(site)}: no such file"
    for source, address in dict.fromkeys(named):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        path = unquote(parts.path)
        target = source
        if path:
            target = (site / path.lstrip("/") if path.startswith("/") else source.parent / path).resolve()
        if target.is_dir():
            target = target / "index.html"
        if not target.is_relative_to(site) or not target.is_file():
            yield f"{source.relative_to(site)}: {address}: no such file"
        elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{source.relative_to(site)}: {address}: no such anchor"


# What two pages show after their scripts have run: a selector of CSS, and a regular expression for the text
# of one of its elements that can be seen.
SHOWN = {
    "index.html": [
        ("h1", "^offpath"),
        ("nav .md-nav__link", "^Environment variables$"),
        ("td a", r"^docs/tutorial\.md$"),
    ],
    "variables.html?q=OFFPATH_ENCRYPT": [
        ("h1", "^Environment variables"),
        ("td code", "^OFFPATH_ENCRYPT$"),
        (".md-search-result__meta", r"^[1-9]\d* matching document"),
        (".md-search-result__link h1", "^Environment variables$"),
    ],
}

# Holds a page of the site in a frame, and tells the server what the page does not show yet.
_WATCH = """<!doctype html><iframe width="1280" height="900" src="%s"></iframe><script>
const expected = %s;
const seen = { opacityProperty: true, visibilityProperty: true };
const frame = document.querySelector("iframe");
frame.onload = () => setInterval(() => {
    const page = frame.contentDocument;
    const missing = expected.filter(([selector, text]) => ![...page.querySelectorAll(selector)].some(
        (found) => found.checkVisibility(seen) && new RegExp(text).test(found.innerText.trim())));
    fetch("/missing", { method: "POST", body: JSON.stringify(missing) })
        .then((answer) => answer.text()).then((last) => last && console.log(last));
}, 100);
</script>"""


# The browser logs messages in order. So when it has logged this one, it has logged all earlier ones.
_LAST_MESSAGE = "the page has been watched"


class Server(http.server.ThreadingHTTPServer):
    """Serves the site, and the page /watch, which holds a page of the site in a frame.

    `loaded` is set when the frame first reports, and `complete` when its page shows all it should. Once
    `ending` is set, the page /watch logs _LAST_MESSAGE."""

    def __init__(self, site: Path, watched: str) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
        self.page = (_WATCH % (watched, json.dumps(SHOWN[watched]))).encode()
        self.missing: list[list[str]] = [["frame", "the page"]]
        self.loaded = threading.Event()
        self.complete = threading.Event()
        self.ending = threading.Event()

    def handle_error(self, *where: Any) -> None:
        # The browser may end in the middle of an answer.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*where)


class Handler(http.server.SimpleHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.path == "/watch":
            self._answer(self.server.page)
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self.server.missing = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.loaded.set()
        if not self.server.missing:
            self.server.complete.set()
        self._answer(_LAST_MESSAGE.encode() if self.server.ending.is_set() else b"")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def not_shown(site: Path, patience: float) -> Iterator[str]:
    """A line for each thing that the browser does not show, and for each complaint of a page's script."""
    if browser.program() is None:
        yield "no browser is there (`scripts/setup.sh tests` installs one)"
        return
    for page in SHOWN:
        with tempfile.TemporaryDirectory() as directory, Server(site, page) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}/watch"
            with browser.opened(address, Path(directory) / "browser") as log:
                if not (server.loaded.wait(60) and server.complete.wait(patience)):
                    for selector, text in server.missing:
                        yield f"{page}: shows no {selector} with {text}"
                server.ending.set()
                until = time.monotonic() + 20
                while _LAST_MESSAGE not in log.read_text() and time.monotonic() < until:
                    time.sleep(0.05)
            server.shutdown()
            for line in log.read_text().splitlines():
                if "CONSOLE" in line and _LAST_MESSAGE not in line:
                    yield f"{page}: {line}"


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    patience = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    wrong = [*dead_links(site), *not_shown(site, patience)]
    for line in wrong:
        print(f"check_site.py: {line}", file=sys.stderr)
    if not wrong:
        print("docs: every link of the site leads somewhere, and a browser shows its pages")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
