"""Media around the simulated arm, one per file: the parts of the family `medium`."""
