"""Command line, reports, identification and benchmarks."""
