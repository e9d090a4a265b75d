"""Charts, patterns and documents, drawn as SVG."""
