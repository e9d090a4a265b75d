"""What a reader's states say: heads that find where a text breaks, and how they learn it from corrupted prose."""
