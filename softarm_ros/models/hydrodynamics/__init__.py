"""Drag, added mass and buoyancy of an arm in water."""
