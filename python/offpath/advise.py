"""Says what offload would bring to a profiled MPI program: replays the profile in the simulator with and
without devices, and looks at each call site for computation that could hide its communication."""

import json
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from offpath import profiles, sim, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.profiles import Profile, Site

# Gains up to this many percent, either way, are no change: two runs of one program differ by as much.
# Repeated runs that differ by more widen the band.
NO_CHANGE_PERCENT = 3.0
# A site whose calls take less than this share of the ranks' time is not worth a change.
_MATTERS = 0.01
# Computation of this share of the communication hides most of it.
_ENOUGH = 0.5
_NONBLOCKING = dict.fromkeys(("Sendrecv", "Sendrecv_replace"), "MPI_Irecv and MPI_Isend")


@dataclass(frozen=True)
class SiteAdvice:
    site: Site
    host_s: float | None = None  # of the replays, seconds of all ranks
    offpath_s: float | None = None
    text: str = ""

    @property
    def gain_s(self) -> float | None:
        if self.host_s is None or self.offpath_s is None:
            return None
        return self.host_s - self.offpath_s


@dataclass
class Advice:
    """Times in seconds of the whole program, from the end of MPI_Init to MPI_Finalize."""

    platform: str
    nodes: int
    ranks: int
    measured_s: float
    host_s: float
    offpath_s: float
    here: bool  # the platform is where the profile was taken: the measured run tells the model's error
    sites: list[SiteAdvice] = field(default_factory=list)
    unsupported: dict[str, dict] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    verified: dict[str, float] = field(default_factory=dict)
    polled_s: float = 0.0  # of a rank, inside tests that found nothing
    profiled_s: list[float] = field(default_factory=list)  # of all profiled runs, where there were several

    @property
    def band_percent(self) -> float:
        return max(NO_CHANGE_PERCENT, self.verified.get("noise_percent", 0.0))

    @property
    def error_s(self) -> float:
        """How far the replay without offload, with the work between tests, is from the measured run."""
        return abs(self.all_host_s - self.measured_s)

    @property
    def tested_s(self) -> float:
        """Tests in vain that are no waiting. Replays do not repeat them, and devices do not shorten them.
        Some programs work little between two tests, so their tests are their work."""
        return min(self.polled_s, max(0.0, self.measured_s - self.host_s)) if self.here else 0.0

    @property
    def all_host_s(self) -> float:
        return self.host_s + self.tested_s

    @property
    def gain_percent(self) -> float:
        return 100 * (self.host_s - self.offpath_s) / self.all_host_s if self.host_s > 0 else 0.0

    @property
    def gain_range(self) -> tuple[float, float]:
        """The gain if the model's error were all in either replay."""
        if self.host_s <= 0:
            return (0.0, 0.0)
        spread = 100 * self.error_s / max(self.all_host_s, self.measured_s)
        return (self.gain_percent - spread, self.gain_percent + spread)

    @property
    def predicted_s(self) -> float:
        """With offload: the measured time, scaled by the replays' ratio, where the platform is this one."""
        if not self.here or self.host_s <= 0:
            return self.offpath_s
        return self.measured_s * (1 - self.gain_percent / 100)

    def as_json(self) -> dict:
        low, high = self.gain_range
        return {
            "platform": self.platform,
            "nodes": self.nodes,
            "ranks": self.ranks,
            "measured_s": self.measured_s,
            "profiled_s": self.profiled_s or [self.measured_s],
            "host_s": self.host_s,
            "offpath_s": self.offpath_s,
            "predicted_s": self.predicted_s,
            "gain_percent": self.gain_percent,
            "gain_low_percent": low,
            "gain_high_percent": high,
            "model_error_s": self.error_s,
            "tested_s": self.tested_s,
            "unsupported": self.unsupported,
            "notes": self.notes,
            "band_percent": self.band_percent,
            "verdict": verdict(self.gain_percent, self.band_percent),
            "verified": self.verified
            | (
                {"verdict": verdict(self.verified["gain_percent"], self.band_percent)}
                if self.verified
                else {}
            ),
            "sites": [
                {
                    "call": one.site.call,
                    "place": one.site.place,
                    "count": one.site.count,
                    "bytes": one.site.bytes,
                    "partners": sorted(one.site.partners),
                    "inside_s": one.site.inside_s,
                    "compute_before_s": one.site.compute_s,
                    "waited_for_last_s": one.site.waited_for_last_s,
                    "window_s": one.site.window_s,
                    "waited_s": one.site.waited_s,
                    "host_s": one.host_s,
                    "offpath_s": one.offpath_s,
                    "gain_s": one.gain_s,
                    "advice": one.text,
                }
                for one in self.sites
            ],
        }


def where_from(found: Advice) -> str:
    return f"{units.count(found.ranks, 'rank')} on {units.count(found.nodes, 'node')}"


def headline(found: Advice) -> str:
    """What the replays say of the whole program, in a line. A gain is named only if the model's error leaves
    its sign."""
    low, high = found.gain_range
    gain = found.gain_percent
    if not found.here:
        return f"offload there: about {_more_or_less(gain)}; the model's error there is not known"
    interval = f"with the model's error, between {_more_or_less(low)} and {_more_or_less(high)}"
    if low < 0 < high and verdict(gain, found.band_percent) != "no change":
        return f"offload: the model cannot tell whether it gains or loses: {interval}"
    if verdict(gain, found.band_percent) == "no change":
        return f"offload: no change; {interval}"
    return f"offload: {verdict(gain, found.band_percent)}, {_more_or_less(gain)}; {interval}"


def measured_line(found: Advice) -> str:
    """What runs without offload and with it say, of an Advice that has such runs."""
    whole = "host_wall_s" in found.verified
    unit = "wall_s" if whole else "run_s"
    gain, runs = found.verified["gain_percent"], int(found.verified["runs"])
    times = [units.format_seconds(found.verified[f"{engine}_{unit}"]) for engine in ("host", "offpath")]
    what = "the whole command" if whole else "from MPI_Init to MPI_Finalize"
    line = f"measured with offload: {_more_or_less(gain)} ({times[0]} to {times[1]}, {what}"
    if runs < 2:
        return f"{line}, one run of each): that does not tell whether there is a difference; use more --runs"
    return f"{line}, medians of {runs}): {verdict(gain, found.band_percent)}"


def _more_or_less(gain_percent: float) -> str:
    return f"{abs(gain_percent):.0f} % {'more' if round(gain_percent) < 0 else 'less'} time"


def verdict(gain_percent: float, band_percent: float) -> str:
    """What a gain means: `faster`, `slower`, or `no change` if it lies within the band."""
    if abs(gain_percent) <= band_percent:
        return "no change"
    return "faster" if gain_percent > 0 else "slower"


def measured_gain(host_s: list[float], offpath_s: list[float], unit: str) -> dict[str, float]:
    """What runs in turn, at least one of each, say of the gain: by medians. The noise adds up the median
    distances from either median."""
    host, offpath = statistics.median(host_s), statistics.median(offpath_s)
    distances = [
        statistics.median(abs(one - middle) for one in times)
        for times, middle in ((host_s, host), (offpath_s, offpath))
    ]
    return {
        f"host_{unit}": host,
        f"offpath_{unit}": offpath,
        "runs": len(host_s),
        "gain_percent": 100 * (host - offpath) / host,
        "noise_percent": 100 * sum(distances) / host,
    }


def place(ranks: int, nodes: int) -> tuple[int, int, str | None]:
    """How many nodes, and ranks of each, the replay has: at most `nodes`, such that each has as many. The
    text says so where it is not what was asked for."""
    most = min(nodes, ranks)
    used = next(count for count in range(most, 0, -1) if ranks % count == 0)
    if used == nodes:
        return used, ranks // used, None
    return (
        used,
        ranks // used,
        f"the profile has {ranks} ranks, which are replayed on {used} of the {nodes} nodes; to see more,"
        " profile the program with more ranks",
    )


def is_here(platform: str) -> bool:
    """Whether a platform stands for the machine of the profile: the lab, or a file of the user's."""
    return platform == "lab" or platform not in sim.platform_names()


def replay(
    folder: Path, platform: Path, nodes: int, ranks_per_node: int, engine: str, artifacts: Artifacts
) -> dict:
    """What offpath-sim finds for a profile (docs/advise.md has the fields)."""
    command = [
        str(artifacts.program(sim.PROGRAM)),
        f"--platform={platform}",
        f"--nodes={nodes}",
        f"--ranks-per-node={ranks_per_node}",
        f"--program={folder}",
        f"--engine={engine}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip() or f"{sim.PROGRAM} ended with code {done.returncode}"
        raise OffpathError(Code.JOB_FAILED, lines.removeprefix(f"{sim.PROGRAM}: "))
    return json.loads(done.stdout)


def advise(profile: Profile, platform: str, nodes: int, artifacts: Artifacts) -> Advice:
    return advise_on(profile, sim.find_platform(platform), nodes, artifacts, is_here(platform))


def advise_on(profile: Profile, path: Path, nodes: int, artifacts: Artifacts, here: bool) -> Advice:
    """`here`: the platform's file stands for the machine of the profile."""
    used, each, note = place(len(profile.ranks), nodes)
    host = replay(profile.folder, path, used, each, "host", artifacts)
    offpath = replay(profile.folder, path, used, each, "offpath", artifacts)
    found = Advice(
        platform=host["platform"],
        nodes=used,
        ranks=len(profile.ranks),
        measured_s=profile.measured_s,
        host_s=host["time_s"],
        offpath_s=offpath["time_s"],
        here=here and used == profile.nodes,
        unsupported=host["unsupported"],
        notes=[note] if note else [],
        polled_s=profile.polled_s,
    )
    if host["lost_calls"]:
        found.notes.append(
            f"{host['lost_calls']} calls did not fit into the profile and were not replayed: the program"
            " repeats itself too little"
        )
    if found.unsupported:
        named = ", ".join(f"{what['count']} MPI_{name}" for name, what in found.unsupported.items())
        found.notes.append(f"not simulated, and taken to last as long as measured: {named}")
    if found.tested_s > _MATTERS * found.measured_s:
        found.notes.append(
            f"{units.format_seconds(found.tested_s)} of each rank are tests that find nothing, beside what"
            " the replay waits: taken to last as long with devices"
        )
    if found.here and found.error_s > _ENOUGH * found.measured_s:
        found.notes.append(
            "the replay without offload is far from the measured run, so the prediction is worth little:"
            " calibrate the platform, and give each rank a core"
        )
    times = {engine: _times(profile, result) for engine, result in (("host", host), ("offpath", offpath))}
    whole = profile.measured_s * len(profile.ranks)
    for key, site in profiles.sites_of(profile).items():
        one = SiteAdvice(site, times["host"].get(key), times["offpath"].get(key))
        found.sites.append(SiteAdvice(site, one.host_s, one.offpath_s, say(site, whole, one.gain_s)))
    found.sites.sort(key=lambda one: -one.site.inside_s)
    return found


def windows_only(profile: Profile) -> list[SiteAdvice]:
    """What the profile itself tells, without a replay."""
    whole = profile.measured_s * len(profile.ranks)
    found = [SiteAdvice(site, text=say(site, whole, None)) for site in profiles.sites_of(profile).values()]
    return sorted(found, key=lambda one: -one.site.inside_s)


def say(site: Site, whole_s: float, gain_s: float | None) -> str:
    """What to do with a call site. `whole_s` is the time of all ranks together."""
    weight = site.inside_s + site.waited_s
    if weight < _MATTERS * whole_s:
        return ""
    if site.waited_for_last_s > _ENOUGH * site.inside_s:
        share = 100 * site.waited_for_last_s / site.inside_s
        return f"{share:.0f} % is waiting for the last rank: balance the work; a device cannot help"
    if site.posts:
        if site.window_s < _ENOUGH * site.waited_s:
            window, waited = units.format_seconds(site.window_s), units.format_seconds(site.waited_s)
            return f"computes {window} between post and wait, and waits {waited}: move work between them"
        if gain_s is not None and gain_s <= 0:
            return "has a window, and the host's MPI uses it already"
        return "has a window that a device can use"
    if site.could_be_nonblocking:
        better = _NONBLOCKING.get(site.call, f"MPI_I{site.call.lower()}")
        return f"leaves no window: post {better} earlier, and wait before the data are used"
    return ""


def _times(profile: Profile, result: dict) -> dict[tuple, float]:
    times: dict[tuple, float] = {}
    for rank, call, _count, inside in result["calls"]:
        key = profiles.site_key(profile.ranks[rank], call)
        times[key] = times.get(key, 0.0) + inside
    return times
