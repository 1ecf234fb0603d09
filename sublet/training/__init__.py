"""Learning the weights of the policy `model` from recordings and traces, and measuring how good they are."""
