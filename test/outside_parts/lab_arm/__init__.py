"""Parts of a laboratory's own arm, and its rig: what softarm_ros does not know."""
