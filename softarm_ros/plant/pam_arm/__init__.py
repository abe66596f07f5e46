"""The simulated arm of parallel muscles: valves, filling, backbone dynamics."""
