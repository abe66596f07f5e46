"""Typed schema and strict loader of rig files, and the node graph as data."""
