"""The kinds of arms as parts: what an arm of each kind is, and what its fields must agree with."""
