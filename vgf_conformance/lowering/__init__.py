"""Lowering: a case's module through export, quantisation and the VGF backend into an artifact."""
