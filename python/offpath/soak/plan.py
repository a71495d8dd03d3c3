"""What each run of a soak does: a program, a fault, its victim and its moment. All follow from the seed."""

import random
from dataclasses import dataclass

NONE = "none"
KILL, STOP, LINK, RANK, MEMORY, RESTART = "kill", "stop", "link", "rank", "memory", "restart"
FAULTS = {
    KILL: "kill -9 of a daemon",
    STOP: "kill -STOP of a daemon, for seconds or until the run ends",
    LINK: "a link is cut for seconds",
    RANK: "kill -9 of a rank",
    MEMORY: "a daemon gets no more memory until the run ends",
    RESTART: "a successor takes a daemon's place, which must disturb nothing",
}
# One run of six has no fault: it shows that the cluster is whole again.
_WITHOUT_FAULT = 6
_SHORT_STOPS_S = (0.5, 3.0)  # less than half of the silence after which a daemon counts as lost
_CUTS_S = (0.5, 3.5)


@dataclass(frozen=True)
class Choice:
    program: str
    fault: str
    victim: int  # the index of a node, or a rank
    at: float  # the moment, as a share of the program's normal time
    lasts_s: float | None  # None: until the run ends
    program_seed: int  # for programs that take one

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
        lasts_s = draw.uniform(*_CUTS_S)
    elif fault == STOP and draw.random() < 0.5:
        lasts_s = draw.uniform(*_SHORT_STOPS_S)
    return Choice(program, fault, victim, at, lasts_s, draw.randrange(1, 2**31))
