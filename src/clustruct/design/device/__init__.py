"""Arrays of other libraries, on a GPU or not."""
