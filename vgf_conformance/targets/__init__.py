"""Where an artifact runs: the reference model, Vulkan drivers, and the isolated worker that runs them."""
