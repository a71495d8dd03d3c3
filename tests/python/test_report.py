"""Pages of `offpath report`: what they say of made traces and benchmarks, and how a browser shows them."""

import json
import re

import pytest

import browser
import trace_files
from html_page import check
from offpath import bench, plots, variable_checks
from offpath.errors import OffpathError
from offpath.report import benchmark_page, lanes, measures, picture, run_page, stayed
from offpath.tracing import slices
from trace_files import call, record, span

NAMES = ["MPI_Init", "MPI_Ialltoall", "MPI_Wait", "MPI_Finalize", "alltoall", "MPI_Allreduce"]
INIT, POST, WAIT, FINALIZE, ALLTOALL, ALLREDUCE = (trace_files.number(NAMES, name) for name in NAMES)
MS = 1_000_000


def make(folder, *, wait_ms, program=None, calls_are_traced=True, offloaded=True):
    """Two ranks on two nodes, each with a device. An operation of 1 MiB is at the device from 10 to 50 ms.
    Its rank computes from 10 to 40 ms and waits for `wait_ms`."""
    folder.mkdir()
    names = [program or NAMES[0], *NAMES[1:]]
    after = 40 + wait_ms
    for rank in (0, 1):
        calls = [
            *call(0, 5 * MS, INIT), *call(9 * MS, 10 * MS, POST, size=1 << 20),
            *call(40 * MS, after * MS, WAIT), *call((after + 1) * MS, (after + 2) * MS, ALLREDUCE, size=8),
            *call((after + 10) * MS, (after + 11) * MS, FINALIZE),
        ]  # fmt: skip
        if not calls_are_traced:
            calls = []
        given = span(
            10 * MS - 1, after * MS - 1, "handed_over", id_=rank * 2 + 1, size=1 << 20, what=ALLTOALL
        )
        node = f"node{rank}"
        trace_files.write(
            folder, rank, node, names, [(7, "main", sorted([*calls, *(given if offloaded else ())]))]
        )
        device = [
            record(0, "proxy", trace_files.INSTANT, id_=100 + rank),
            *span(1, 10 * MS, "sleep"),
            *span(10 * MS, 50 * MS, "operation", id_=rank * 2 + 1, other=rank, what=ALLTOALL),
            *span(20 * MS, 30 * MS, "send", id_=50, size=1 << 20, other=101 - rank),
            *span(35 * MS, 45 * MS, "receive", id_=52, size=1 << 20, other=101 - rank),
            *span(50 * MS, 60 * MS, "sleep"),
        ]
        trace_files.write(folder, -1, node, names, [(9, "proxy-0", sorted(device))], process=9)
    return folder


def page_of(folder, before=None):
    return run_page.page(run_page.read(folder), run_page.read(before) if before else None)


def test_measures_of_a_made_run(tmp_path):
    trace = slices.read(make(tmp_path / "t", wait_ms=12))
    (overlap,) = measures.overlap_by_size(trace)
    assert (overlap.name, overlap.bytes, overlap.count) == ("alltoall", 1 << 20, 2)
    assert overlap.seconds == pytest.approx(0.080) and overlap.share == pytest.approx(0.75)
    functions = measures.by_function(trace)
    assert functions["MPI_Wait"].seconds == pytest.approx(0.012) and functions["MPI_Wait"].calls == 1
    assert functions["computation"].seconds == pytest.approx(0.043)
    assert not {"MPI_Init", "MPI_Finalize"} & set(functions)
    for wire in measures.wires(trace):
        assert (wire.sent, wire.received) == (1 << 20, 1 << 20)
        assert wire.active_s == pytest.approx(0.020) and wire.computed_s == pytest.approx(0.015)
    assert measures.main_part(trace) == (5 * MS, 62 * MS)


def test_a_page_says_what_changed_and_what_stayed(tmp_path):
    folder, before = make(tmp_path / "t", wait_ms=12), make(tmp_path / "b", wait_ms=52)
    row = {
        "communicator": "halo", "team": 0, "ranks": 2, "call": "MPI_Ibcast", "offloaded": 0,
        "on_host": {"below the switch-over": 41}, "least_bytes": 1024, "most_bytes": 65536,
        "bytes_from_others": 0,
    }  # fmt: skip
    windows = {"on_host": 2, "why_on_host": "2 without concurrent computation"}
    summary = {"version": 1, "calls": [row], "back_end": "cma", "windows": windows}
    (folder / "summary.json").write_text(json.dumps(summary))
    parser = check(page_of(folder, before))
    assert {"timeline", "trace", "changes", "overlap", "functions", "stayed", "wires"} <= parser.ids
    text = " ".join(parser.text)
    for wanted in ("-41 %", "75 %", "52.00 ms", "12.00 ms", "−40.00 ms", "MPI_Ibcast on halo", "41",
                   "1 KiB to 64 KiB", "below the switch-over", "OFFPATH_MIN_BYTES", "MPI_Allreduce",
                   "device of node1", "2 without concurrent computation"):  # fmt: skip
        assert wanted in text, wanted
    assert "41 calls of" in text
    assert "is slower than the one before" in " ".join(check(page_of(before, folder)).text)
    text = " ".join(check(page_of(before)).text)
    assert "its rank computed during" not in text and "--before" in text


def test_remedies_name_the_settings_that_change_their_row():
    blocking = stayed.Stayed("MPI_Alltoall", "", "blocking", 3, (8, 1 << 20))
    assert "OFFPATH_OPS=default,alltoall." in blocking.remedy
    variable_checks.check({"OFFPATH_OPS": "default,alltoall"})
    small = stayed.Stayed("MPI_Ibcast", "", "below the switch-over", 3, (8, 40_000))
    assert "OFFPATH_MIN_BYTES=32K" in small.remedy
    left_out = stayed.Stayed("MPI_Ibcast", "", "switched off by OFFPATH_OPS", 3, (8, 40_000))
    assert left_out.remedy == "Add ibcast to OFFPATH_OPS."


def test_a_page_has_the_hints_of_the_runs_own_summary(tmp_path):
    folder = make(tmp_path / "t", wait_ms=12, offloaded=False)
    assert "would have had work" not in " ".join(check(page_of(folder)).text)
    hints = ["OFFPATH_RMA=both for 2 windows within a node"]
    (folder / "summary.json").write_text(json.dumps({"version": 1, "calls": [], "hints": hints}))
    text = " ".join(" ".join(check(page_of(folder)).text).split())
    assert "It would have had work with OFFPATH_RMA=both for 2 windows within a node" in text


def test_without_calls_overlap_is_not_known(tmp_path):
    folder = make(tmp_path / "t", wait_ms=12, calls_are_traced=False)
    assert measures.overlap_by_size(slices.read(folder)) == []
    text = " ".join(check(page_of(folder)).text)
    assert "overlap is not known" in text and "This trace has no calls of MPI" in text
    assert "or wait for it later" not in text


def test_names_of_a_program_are_text(tmp_path):
    hostile = "</script><script>document.title='bad'</script>"
    page = page_of(make(tmp_path / "t", wait_ms=12, program=hostile))
    check(page)
    assert page.count("<script") == 2 and "document.title" in page


def test_a_damaged_summary_is_named(tmp_path):
    folder = make(tmp_path / "t", wait_ms=12)
    (folder / "summary.json").write_text('{"calls": [{}]}')
    with pytest.raises(OffpathError, match=r"summary\.json"):
        run_page.read(folder)
    (folder / "summary.json").write_text("")
    run_page.read(folder)


def test_many_slices_are_drawn_as_fewer():
    row = [slices.Slice(i * 1000, i * 1000 + 400, "MPI_Test", bytes=8) for i in range(50_000)]
    row.append(slices.Slice(10**9, 2 * 10**9, "computation"))
    group = lanes.Group("rank 0", "n", [lanes.Lane("call", "calls", [row])])
    least = lanes.thin([group], 1000)
    (thinned,) = group.lanes[0].rows
    assert least > 0 and len(thinned) <= 1000
    assert sum(one.bytes for one in thinned) == 8 * 50_000
    assert sum(one.count for one in thinned) == 50_001
    assert (thinned[-1].begin, thinned[-1].end, thinned[-1].name) == (10**9, 2 * 10**9, "computation")
    assert all(a.end <= b.begin for a, b in zip(thinned, thinned[1:], strict=False))


def overlap_report():
    rows = [
        {
            "op": "ialltoall", "bytes": size, "engine": engine, "pure_s": 0.01, "compute_s": 0.01,
            "wire_s": 0.008, "total_s": total, "overlap_percent": percent, "post_s": 1e-5, "work_units": 3,
            "runs": [], "verified": True,
        }
        for size, engine, total, percent in (
            (65536, "host", 0.010, 100.0), (65536, "offpath", 0.012, 80.0), (1048576, "host", 0.019, 10.0),
            (1048576, "offpath", 0.0102, 98.0),
        )
    ]  # fmt: skip
    return {
        "benchmark": "overlap", "lab": {"description": "2 nodes <x>"}, "runs": 1, "rows": rows,
        "engines": {"host": "Open MPI", "offpath": "offpath"},
    }  # fmt: skip


def comparison():
    entry = {
        "host": {"median": 2.0, "low": 1.9, "high": 2.1, "count": 1, "ratio": 1.0},
        "offpath": {"median": 1.5, "low": 1.4, "high": 1.6, "count": 1, "ratio": 0.75},
    }
    runs = [
        {"run": 0, "engine": name, "failed": False, "measurements": {"total_s": value}, "wire": [],
         "pcie": [], "summary_line": "offpath: offloaded 5 of 5 collectives"}
        for name, value in (("host", 2.0), ("offpath", 1.5))
    ]  # fmt: skip
    return {
        "program": ["/x/fft3d"], "lab": {"description": "2 nodes"}, "summary": {"total_s": entry},
        "runs": runs, "engines": {name: {"label": name, "alone": None} for name in entry},
        "reference": "host", "differences": [], "environment": {"load_average": 0.1},
    }  # fmt: skip


def test_pages_of_benchmarks(tmp_path):
    path = tmp_path / "b.json"
    path.write_text(json.dumps(overlap_report()))
    parser = check(benchmark_page.page(path))
    text = " ".join(parser.text)
    assert {"overlap", "changes"} <= parser.ids and "98 %" in text and "2 nodes <x>" in text
    assert "takes 1.20 times as long" in text and "1 operations and sizes" in text
    path.write_text(json.dumps(comparison()))
    text = " ".join(check(benchmark_page.page(path)).text)
    assert "-25 %" in text and "offloaded 5 of 5" in text and "use more --runs" in text
    path.write_text(json.dumps({"benchmark": "other", "rows": [{"name": "<b>", "time_s": 0.5, "n": 3}]}))
    text = " ".join(check(benchmark_page.page(path)).text)
    assert "<b>" in text and "500.00 ms" in text
    for wrong in ("{}", "[]", "3", '{"rows": [3]}', "no"):
        path.write_text(wrong)
        with pytest.raises(OffpathError, match=r"b\.json"):
            benchmark_page.page(path)
    assert bench.overlap_percent(1.0, 1.0, 1.25) == 75.0


def test_the_command_writes_a_page(offpath, tmp_path):
    make(tmp_path / "t", wait_ms=12)
    done = offpath("report", str(tmp_path / "t"), "-o", str(tmp_path / "p.html"))
    assert done.returncode == 0, done.stderr
    check((tmp_path / "p.html").read_text())
    done = offpath("report", str(tmp_path), "-o", str(tmp_path / "q.html"))
    assert done.returncode == 2 and "holds no trace" in done.stderr and "Traceback" not in done.stderr


def test_a_picture_shows_the_same_calls_both_ways(tmp_path):
    after, before = (
        slices.read(make(tmp_path / name, wait_ms=wait)) for name, wait in (("t", 12), ("b", 52))
    )
    part = (8 * MS, 53 * MS)  # MPI_Ialltoall, MPI_Wait
    assert measures.same_part(after, part, before) == (8 * MS, 93 * MS)
    assert measures.same_part(after, (20 * MS, 30 * MS), before) is None
    # Twelve operations are wanted, and there is one: the main part is shown.
    assert measures.telling_part(after) == measures.main_part(after)
    begin, end = measures.telling_part(after, operations=1)
    assert begin < 10 * MS and 52 * MS <= end < 55 * MS
    path = tmp_path / "p.png"
    picture.draw(after, before, path)
    pixels = (plots.plt.imread(path)[:, :, :3] * 255).round().astype(int)
    found = {tuple(color) for color in pixels.reshape(-1, 3).tolist()}
    for kind in ("computation", "call", "operation", "send", "receive"):
        assert tuple(bytes.fromhex(lanes.COLORS[kind][1:])) in found, kind


# What a user does: looks at the whole run, zooms, and holds the mouse over the operation of rank 0.
_USE = """
const canvas = document.getElementById("timeline"), out = [];
const say = (what) => out.push([what, +canvas.dataset.from, +canvas.dataset.to, +canvas.dataset.drawn]);
const press = (what) => { document.querySelector(`button[data-do=${what}]`).click(); say(what); };
say("first");
for (const what of ["all", "in", "left", "right", "out", "detail"]) press(what);
const box = canvas.getBoundingClientRect();
const at = (x, y) => ({ clientX: box.left + x, clientY: box.top + y, bubbles: true });
canvas.dispatchEvent(new WheelEvent("wheel", { ...at(400, 60), ctrlKey: true, deltaY: -100 }));
say("wheel");
canvas.dispatchEvent(new MouseEvent("mousedown", at(400, 60)));
canvas.dispatchEvent(new MouseEvent("mousemove", at(300, 60)));
window.dispatchEvent(new MouseEvent("mouseup"));
say("drag");
press("all");
let found = "";
for (let y = 20; y < 120 && !found; y += 4) {
  canvas.dispatchEvent(new MouseEvent("mousemove", at(500, y)));
  const tip = document.getElementById("tip");
  if (!tip.hidden && tip.textContent.includes("alltoall")) found = tip.textContent;
}
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
const colors = new Set();
for (let i = 0; i < pixels.length; i += 4)
  colors.add([...pixels.slice(i, i + 3)].map((v) => v.toString(16).padStart(2, "0")).join(""));
const said = document.createElement("pre");
said.id = "said";
const width = document.documentElement.scrollWidth;
said.textContent = JSON.stringify({ out, found, colors: [...colors], width });
document.body.append(said);
"""


def test_a_browser_shows_the_timeline(tmp_path):
    page = page_of(make(tmp_path / "t", wait_ms=12), make(tmp_path / "b", wait_ms=52))
    used = tmp_path / "used.html"
    used.write_text(page.replace("</body>", f"<script>{_USE}</script></body>"))
    elements, log = browser.dump(used.as_uri(), tmp_path / "profile", "--window-size=1000,900")
    assert "CONSOLE" not in log, log
    said = re.search(r'<pre id="said">(.*?)</pre>', elements, re.DOTALL)
    assert said, log
    said = json.loads(said[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    shown = {what: (begin, end) for what, begin, end, _ in said["out"]}
    assert all(drawn > 0 for *_, drawn in said["out"])
    whole = 63 * MS
    assert shown["all"] == (0, whole)
    assert shown["in"][1] - shown["in"][0] == whole // 2
    assert shown["left"][0] < shown["right"][0] and shown["detail"] == shown["first"]
    length = shown["wheel"][1] - shown["wheel"][0]
    assert length == pytest.approx(0.8 * (shown["detail"][1] - shown["detail"][0]), rel=1e-6)
    assert shown["drag"][0] > shown["wheel"][0] and shown["drag"][1] - shown["drag"][0] == length
    assert "alltoall" in said["found"] and "1.00 MiB" in said["found"] and "rank 0" in said["found"]
    drawn = {f"#{color}" for color in said["colors"]}
    for kind in ("computation", "call", "operation", "send", "receive"):
        assert lanes.COLORS[kind] in drawn, kind
    assert said["width"] <= 1000


_CROWDED = """
const canvas = document.getElementById("timeline"), found = [+canvas.dataset.crowded];
for (const what of ["all", "in", "in", "in", "in", "in", "in"]) {
  document.querySelector(`button[data-do=${what}]`).click();
  found.push(+canvas.dataset.crowded);
}
const said = document.createElement("pre");
said.id = "said";
said.textContent = JSON.stringify({ found, width: document.body.clientWidth });
document.body.append(said);
"""


def test_labels_of_the_time_do_not_overlap_on_a_phone(tmp_path):
    page = page_of(make(tmp_path / "t", wait_ms=12))
    used = tmp_path / "used.html"
    narrow = "<style>body { width: 340px; margin: 0; padding: 0; }</style>"
    used.write_text(page.replace("</head>", narrow + "</head>").replace(
        "</body>", f"<script>window.dispatchEvent(new Event('resize'));{_CROWDED}</script></body>"
    ))  # fmt: skip
    elements, log = browser.dump(used.as_uri(), tmp_path / "profile", "--window-size=500,900")
    said = re.search(r'<pre id="said">(.*?)</pre>', elements, re.DOTALL)
    assert said, log
    shown = json.loads(said[1])
    assert shown["width"] == 340 and shown["found"] == [0] * 8
