"""Trajectories, tracker, limits and supervisor logic: no I/O."""
