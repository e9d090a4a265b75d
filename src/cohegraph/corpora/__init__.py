"""Readers of graded documents."""
