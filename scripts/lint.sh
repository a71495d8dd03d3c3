#!/usr/bin/env bash
# lint.sh: checks the form of the C, C++, Python and Markdown sources and of GitHub's files, and the types of the Python
# command. It changes nothing; `make format` corrects what a formatter can correct. Every check runs, and the exit code is
# non-zero if one of them failed.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
git ls-files -z '*.h' '*.c' '*.cpp' '*.hpp' |
    xargs -0r -P "$(nproc)" -n 50 clang-format-16 --dry-run -Werror || failed=1
if git grep -nIE '[[:blank:]]+$'; then
    echo "lint: the lines above end with white space" >&2
    failed=1
fi
.venv/bin/python scripts/check_markdown.py || failed=1
.venv/bin/ruff check -q . || failed=1
.venv/bin/ruff format -q --check . || failed=1
.venv/bin/mypy --no-error-summary || failed=1
schema() { # NAME FILE...: checks GitHub's files, and prints nothing but what is wrong
    local said
    said=$(.venv/bin/check-jsonschema --builtin-schema "vendor.github-$1" "${@:2}" 2>&1) && return
    echo "$said" >&2
    failed=1
}
schema workflows .github/workflows/*.yml
schema issue-forms .github/ISSUE_TEMPLATE/*.yml
exit $failed
