"""A small FastMCP server over Streamable HTTP: `fastmcp_server.py PORT`."""
import sys

from fastmcp import FastMCP

mcp = FastMCP("interop")


@mcp.tool
def shout(text: str) -> str:
    """Says it loudly."""
    return text.upper()


mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
