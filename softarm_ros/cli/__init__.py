"""Command line, reports and identification."""
