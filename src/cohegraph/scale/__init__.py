"""Many documents: stores of features."""
