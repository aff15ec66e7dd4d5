"""Golden packs: frozen cases in one file. Only building one needs PyTorch."""
