"""A word that stands for a patient's: where it turns up, something of a request has leaked."""

CANARY = "Zanzibar7f3a"
