"""Figures as SVG, one kind a file."""
