"""What is true: declarations, proofs, exact values, rounding budgets, contracts. No backend, no input or output."""
