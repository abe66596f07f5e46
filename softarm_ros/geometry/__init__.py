"""Foundations: rotations, poses, arrays, compiled kernels, configuration blocks and parts."""
