"""The suites, a module each; see `tdc_cli.bench`."""
