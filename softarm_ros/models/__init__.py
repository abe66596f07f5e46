"""Mechanics of soft arms: pure, compiled, no I/O."""
