"""An HTTPS process of central: it answers once it has what it needs, and ends so that nobody is sent to it in vain."""
