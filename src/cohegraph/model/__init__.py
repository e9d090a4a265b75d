"""The network on the corpus graph, how it learns, and the model that people use."""
