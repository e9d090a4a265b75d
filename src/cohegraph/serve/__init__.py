"""The HTTP interface and the page. It needs the extra ``serve``: ``pip install "cohegraph[serve]"``."""
