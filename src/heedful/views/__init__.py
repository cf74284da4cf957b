"""Tables, figures and the HTML page: renders records, computes nothing."""
