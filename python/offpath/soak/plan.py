"""What each run of a soak does: a program, a fault, its victim and its moment. All follow from the seed."""

import random
from dataclasses import dataclass

NONE = "none"
KILL, EARLY, STOP, LINK, RANK, MEMORY, RESTART = "kill", "early", "stop", "link", "rank", "memory", "restart"
FAULTS = {
    KILL: "kill -9 of a daemon",
    EARLY: "kill -9 of a daemon within a second of the job's start",
    STOP: "kill -STOP of a daemon, for seconds or until the run ends",
    LINK: "a link is cut for seconds",
    RANK: "kill -9 of a rank",
    MEMORY: "a daemon gets no more memory until the run ends",
    RESTART: "a successor takes a daemon's place, which must disturb nothing",
}
KILLS = (KILL, EARLY)
_EARLY_S = 1.0
# One run of six has no fault: it shows that the cluster is whole again.
_WITHOUT_FAULT = 6
_SHORT_STOPS_S = (0.5, 3.0)  # less than half of the silence after which a daemon counts as lost
# On both sides of that silence, OFFPATH_LOST_AFTER_S: 8 s.
_CUTS_S = ((0.5, 3.5), (10.0, 16.0))
RUNS_OF_A_CLUSTER = 25  # then it is made anew, and where its devices run is drawn again


@dataclass(frozen=True)
class Choice:
    program: str
    fault: str
    victim: int  # the index of a node, or a rank
    at: float  # the moment, as a share of the program's normal time; of an early kill, of a second
    lasts_s: float | None  # None: until the run ends
    program_seed: int  # for programs that take one

    def moment_s(self, normal_s: float) -> float:
        """Seconds after the job's start. `normal_s`: the program's normal time."""
        return self.at * (_EARLY_S if self.fault == EARLY else normal_s)

    def victim_name(self) -> str:
        if self.fault == NONE:
            return ""
        return f"rank {self.victim}" if self.fault == RANK else f"node{self.victim}"


def choose(seed: int, run: int, programs: list[str], faults: list[str], nodes: int, ranks: int) -> Choice:
    """The choice for run number `run`. It depends on the arguments only. Without faults, no run has one."""
    draw = random.Random(f"{seed}/{run}")
    program = draw.choice(programs)
    fault = NONE if draw.randrange(_WITHOUT_FAULT) == 0 or not faults else draw.choice(faults)
    victim = draw.randrange(ranks if fault == RANK else nodes)
    at = draw.uniform(0.05, 0.95)
    lasts_s = None
    if fault == LINK:
        lasts_s = draw.uniform(*draw.choice(_CUTS_S))
    elif fault == STOP and draw.random() < 0.5:
        lasts_s = draw.uniform(*_SHORT_STOPS_S)
    return Choice(program, fault, victim, at, lasts_s, draw.randrange(1, 2**31))


def devices(seed: int, stretch: int, kinds: list[str]) -> str:
    """Which of these kinds of devices the cluster has in this stretch of runs. Depends on the arguments
    only."""
    return random.Random(f"{seed}/devices/{stretch}").choice(kinds)
