"""Laws that extensions hold: our tests run the same ones as `sublet policy test` and `sublet plugin test`."""
