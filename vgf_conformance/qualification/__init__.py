"""What a vendor hands in for a driver, how it is made, and how it is checked, without PyTorch."""
