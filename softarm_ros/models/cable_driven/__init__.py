"""Sections driven by cables: constant curvature and cable statics."""
