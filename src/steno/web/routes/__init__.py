"""Request handlers: parse the request, build the view, render the template."""
