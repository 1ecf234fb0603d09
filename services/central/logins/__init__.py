"""The controller of logins: leaves that log in at the hub have their tokens reviewed and their answers signed."""
