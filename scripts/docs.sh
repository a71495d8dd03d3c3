#!/usr/bin/env bash
# docs.sh: makes the site of the documentation in build/site (`make docs`), with search and the reference of the command and
# of the C API's headers. A link that leads nowhere fails it. Its Python environment is .venv-docs.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=.venv-docs/offpath-docs.sha256
wanted=$(sha256sum requirements-docs.txt | cut -d' ' -f1)
if [ "$(cat $stamp 2>/dev/null)" != "$wanted" ]; then
    echo "docs: making the Python environment in .venv-docs"
    [ -x .venv-docs/bin/python ] || /usr/bin/python3 -m venv .venv-docs
    .venv-docs/bin/python -m pip install -q --disable-pip-version-check -r requirements-docs.txt
    echo "$wanted" >$stamp
fi
rm -rf build/site-pages
mkdir -p build/site-pages/pages
PYTHONPATH=python .venv/bin/python -m typer offpath.whole_cli utils docs --name offpath --output build/site-pages/command.md >/dev/null
.venv/bin/python scripts/site_pages.py build/site-pages
# The version is pinned, so the warning about its future is for those who raise it. With -q, --strict sees no warnings.
log=build/site-pages/mkdocs.log
NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict -f build/site-pages/mkdocs.yml -d "$PWD/build/site" >$log 2>&1 || {
    cat $log >&2
    exit 1
}
echo "docs: build/site/index.html (its search needs a web server: python3 -m http.server -d build/site)"
