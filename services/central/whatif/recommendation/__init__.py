"""Questions about recommendations: JSON models, and the calls of the rules that central follows."""
