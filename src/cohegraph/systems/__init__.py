"""Everything that predicts levels, one file a system, all with the same verbs."""
