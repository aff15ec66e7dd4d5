"""Records of what was run: schema, store, merging, expectations. No torch."""
