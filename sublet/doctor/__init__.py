"""`sublet doctor`: facts are gathered (`*_probe`), pure checks judge them, one finding each."""
