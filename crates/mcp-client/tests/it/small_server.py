"""A small MCP server for the tests of the manager: handshake era, a few tools that tell about the process.

usage: small_server.py [--log FILE] [--silent-probe] [--ignore-eof] [--die-after-init] [--fail TEXT] [ANYTHING]
"""
import json
import os
import sys
import time

args = sys.argv[1:]


def option(name):
    return args[args.index(name) + 1] if name in args else None


def log(text):
    if option("--log"):
        with open(option("--log"), "a") as file:
            file.write(text + "\n")


def send(id, **answer):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, **answer}) + "\n")
    sys.stdout.flush()


def tell(name):
    if name == "exit":
        sys.stderr.write("told to go\n")
        sys.stderr.flush()
        os._exit(7)
    facts = {"pid": os.getpid(), "cwd": os.getcwd(), "args": args, "env": dict(os.environ)}
    return json.dumps(facts)


log(f"start {os.getpid()}")
if option("--fail"):
    sys.stderr.write(option("--fail") + "\n")
    sys.exit(3)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    log(str(method))
    if method == "initialize":
        send(id, result={
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"},
        })
    elif method == "notifications/initialized":
        if "--die-after-init" in args:
            os._exit(1)
    elif method == "tools/list":
        names = ["facts", "exit"]
        send(id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]})
    elif method == "tools/call":
        send(id, result={"content": [{"type": "text", "text": tell(message["params"]["name"])}]})
    elif id is not None and not (method == "server/discover" and "--silent-probe" in args):
        send(id, error={"code": -32601, "message": "unknown"})
while "--ignore-eof" in args:
    time.sleep(60)
