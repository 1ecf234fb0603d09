"""`sublet doctor`: facts are gathered (`look_at_*`), pure checks judge them, one finding each."""
