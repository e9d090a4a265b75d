"""The model that people use: how it is trained, what it says about documents, and how it is saved."""
