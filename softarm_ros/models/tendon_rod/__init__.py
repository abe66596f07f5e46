"""Rods bent by cables as arm models: configuration and actuation are the cables' tensions."""
