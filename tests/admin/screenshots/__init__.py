"""Takes screenshots of every kind of page, on the data of an invented installation."""
