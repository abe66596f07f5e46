"""VRPN: a protocol of Vicon Tracker, Motive, Cortex and others, in addition to their own ones."""
