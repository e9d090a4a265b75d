"""The graph convolutional network of the paper: the network, its closed form, the full graph, and the system."""
