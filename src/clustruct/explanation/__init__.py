"""What weights mean in the units of the table, and how groups and experts differ."""
