"""The suites' pytest plugin; the harness's own tests run under it too."""

pytest_plugins = ["vgf_conformance.plugin"]
