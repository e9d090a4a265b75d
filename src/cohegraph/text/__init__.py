"""Everything that needs a pretrained model, behind three small protocols: parser, word vectors, encoder."""
