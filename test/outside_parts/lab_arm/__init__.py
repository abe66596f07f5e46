"""Parts of a laboratory's own arm, and its rig, which are not in softarm_ros."""
