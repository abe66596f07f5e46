"""The kinds of arms as parts: the fields of each kind, and checks between them."""
