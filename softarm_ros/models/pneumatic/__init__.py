"""Three-chamber sections with sagging mounts."""
