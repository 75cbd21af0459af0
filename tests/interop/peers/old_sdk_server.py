"""A server on the official Python SDK of its early days, which dies of any request before `initialize`."""
from mcp.server.fastmcp import FastMCP

server = FastMCP("old")


@server.tool()
def shout(text: str) -> str:
    """Says it louder."""
    return text.upper()


server.run()
