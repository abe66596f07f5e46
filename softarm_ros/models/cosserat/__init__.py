"""Cosserat rod with cables: statics of any number of segments."""
