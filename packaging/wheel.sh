#!/usr/bin/env bash
# wheel.sh PYTHON OUT: makes the wheel of the offpath command in the folder OUT (`make wheel`). It needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 out=$2
mkdir -p "$out"
# setuptools writes into the folders build/ and python/ of where it works.
copy=$(mktemp -d "${TMPDIR:-/tmp}/offpath-wheel.XXXXXX")
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/python"
cp -rL pyproject.toml LICENSE "$copy/"
cp -rL python/offpath "$copy/python/"
"$python" -m pip -q --disable-pip-version-check wheel --no-deps --no-build-isolation -w "$out" "$copy"
ls "$out"/offpath-*.whl
