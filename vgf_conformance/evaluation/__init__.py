"""One (case, sample, profile, scheme) on one target: lowered, run, compared stage by stage, recorded."""
