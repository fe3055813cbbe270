"""The index of a folder of recordings, and questions to it."""
