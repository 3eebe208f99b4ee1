"""A certificate that someone else can check: its schema, what follows from its numbers, and who signed it."""
