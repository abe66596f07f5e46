"""Assembly of a rig into running parts, the control loop, the in-process runner."""
