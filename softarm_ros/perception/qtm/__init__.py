"""Qualisys: the RT protocol of QTM, versions 1.20 to 1.25."""
