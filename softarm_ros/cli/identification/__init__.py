"""`softarm identify RIG DATA...`: one way to identify, for every kind of arm."""
