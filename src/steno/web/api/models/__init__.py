"""Every response of the API, as types; the OpenAPI document is generated from them."""
