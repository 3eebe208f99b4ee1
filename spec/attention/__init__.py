"""Masked scaled dot-product attention: what is true of it, and how far a kernel may be from that."""
