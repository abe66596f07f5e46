"""Stereo cameras: calibration, detection of markers, triangulation in air and through a window."""
