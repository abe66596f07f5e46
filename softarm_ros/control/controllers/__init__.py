"""Controllers, one per file: `docs/tracking.md`."""
