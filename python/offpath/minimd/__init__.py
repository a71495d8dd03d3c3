"""The studies of miniMD with devices: `offpath study minimd-...`.

case.py names a run and what comes of it; sources.py says who runs it, the lab or a simulator; measure.py
takes runs in turn; timing.py, accuracy.py, model.py and manual.py say which runs a study needs and what its
rows are; study.py lists the studies.
"""
