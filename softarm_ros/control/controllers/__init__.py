"""Controllers, a file each: `docs/tracking.md`."""
