"""How far groups can be trusted: would they come again, how sure are their values, do they differ."""
