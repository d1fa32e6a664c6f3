"""The page of the review: what failed, was retried, took long and was skipped in some days."""
