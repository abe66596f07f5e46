"""Arm models of rods bent by cables: configuration and actuation are the cable tensions."""
