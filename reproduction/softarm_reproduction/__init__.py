"""The papers' experiments, studies of measured arms, and benchmarks of softarm_ros."""
