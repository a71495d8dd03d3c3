"""The papers' figures beside ours: `offpath study reproduce` and docs/reproduction.md.

Every figure of ours is computed: by the models, by simulations, or from results of measurements that are
kept in `stored`, each with the command that made it. Nothing here is typed in but the papers' figures.
"""
