"""OptiTrack: the NatNet stream of Motive, versions 3.1 to 4.2."""
