"""Any number of documents: worker processes, stores of features, training in chunks, streamed assessments."""
