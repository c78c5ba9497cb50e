"""How far groups can be trusted: do they come again, how sure are their values, do they differ."""
