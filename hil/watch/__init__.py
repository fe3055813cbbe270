"""A bench watched from beside it: its page in a browser, and messages when it matters."""
