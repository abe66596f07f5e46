"""Models of pneumatic sections with three chambers and sagging mounts."""
