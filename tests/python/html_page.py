"""Checks the form of an HTML page."""

from html.parser import HTMLParser

VOID = {"meta", "br"}  # elements that have no end


class Checked(HTMLParser):
    """Checks that elements are closed in order, and that nothing is loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.text = [], set(), []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert "src" not in found and not any(name.startswith("on") for name in found)
        assert all((found.get(name) or "#").startswith("#") for name in ("href", "xlink:href"))
        self.ids.add(found.get("id"))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if "style" in self.open:
            assert "url(" not in data.replace("url(#", "") and "@import" not in data


def check(page):
    """Returns the parser, which has the ids and the text of the page."""
    parser = Checked()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser
