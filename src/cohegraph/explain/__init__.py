"""Why a document has its level: what counts for it, which sentences hang loose, and what would change it."""
