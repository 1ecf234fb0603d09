"""An HTTPS process of central: it answers once it has what it needs, and stops so that no request is lost."""
