"""The studies of miniMD with devices: `offpath study minimd-...`.

case.py describes a run and its outcome. sources.py supplies runs, from the lab or from a simulator.
measure.py does the runs in turn. timing.py, accuracy.py, model.py and halo.py define which runs a study needs
and what its rows are. study.py lists the studies.
"""
