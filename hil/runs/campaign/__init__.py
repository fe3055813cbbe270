"""Many trials one after the other: their order is planned, what happened is in a journal."""
