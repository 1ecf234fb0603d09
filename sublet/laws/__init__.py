"""Laws that extensions hold: the tests of this repository and `sublet policy test` run the same ones."""
