"""The simulated water-hydraulic arm."""
