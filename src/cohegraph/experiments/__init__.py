"""Experiments: plans, folds, runs, measures, tables, figures and reports."""
