"""TOSA's own conformance tests, from the generator of tosa-tools, judged by its verifier and by ours."""
