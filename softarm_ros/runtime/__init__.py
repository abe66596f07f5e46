"""Assembly of a rig into running parts, the control loops and the in-process runner."""
