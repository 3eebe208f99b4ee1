"""Case families: seeded batches of rows on which a masked softmax is judged."""

from .plan import EFFORTS, Case, plan

__all__ = ["EFFORTS", "Case", "plan"]
