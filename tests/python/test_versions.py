"""Files of other versions, older and newer: readers name both versions and what to do, and read nothing."""

import json

import pytest

import trace_files
from offpath import profiles, signatures, tracing, tuning_table
from offpath.errors import OffpathError
from offpath.tracing import files


def table(folder, version):
    path = folder / "table.json"
    path.write_text(json.dumps({"offpath_tuning": version, "rows": []}))
    tuning_table.read(path)


def signature(folder, version):
    path = folder / "signature.json"
    path.write_text(json.dumps({"offpath_signature": version, "another": "layout"}))
    signatures.read(path)


def profile(folder, version):
    (folder / "rank-0.json").write_text(json.dumps({"format": "offpath-profile", "version": version}))
    profiles.read(folder)


def trace(folder, version):
    trace_files.write(folder, 0, "n", [], [(7, "main", trace_files.span(1, 2, "wait"))])
    (path,) = tracing.find(folder)
    data = bytearray(path.read_bytes())
    data[7:8] = b"%d" % version
    path.write_bytes(data)
    files.read_all(folder)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("read", [table, signature, profile, trace])
def test_files_of_other_versions_are_refused_by_name(tmp_path, read, version):
    with pytest.raises(OffpathError, match=f"version {version}; this command reads version 1") as caught:
        read(tmp_path, version)
    assert str(tmp_path) in str(caught.value) and "with the offpath that wrote it" in str(caught.value.hint)
