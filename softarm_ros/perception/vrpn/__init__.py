"""VRPN: the protocol that Vicon Tracker, Motive, Cortex and many others speak beside their own."""
