"""Laws of extensions: our tests run the same ones as `sublet policy test` and `sublet plugin test`."""
