"""The paper's three graphs as pure functions: arrays in, arrays out."""
