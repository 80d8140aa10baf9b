"""The report of a request that the allocator had no memory for: which pass and module it was for, and what held the
memory."""
