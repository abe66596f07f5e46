"""`softarm identify RIG DATA...`: identification from recordings, for every kind of arm."""
