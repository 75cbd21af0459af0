#!/usr/bin/env python3
"""Opens the web host in headless Chromium, uses it as a person would, and takes pictures.

    tests/interop/browser/web_host.py TARGET_FOLDER PICTURE_FOLDER

TARGET_FOLDER holds the built `web_host` and `field-notes` (target/debug). Needs the Debian packages `chromium` and
`chromium-driver` (tests/interop/install brings them). Talks WebDriver, with nothing but the standard library.
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
NOTE = "Write down a field note: two herons <b>and</b> a kingfisher at the north pond, light rain. Then search the archive for heron."
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1000,1100"]
        options = {"goog:chromeOptions": {"binary": shutil.which("chromium"), "args": arguments}}
        self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": options}})["sessionId"]

    def call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def do(self, method, path, body=None):
        return self.call(method, f"/session/{self.session}{path}", body)

    def open(self, url):
        self.do("POST", "/url", {"url": url})

    def run(self, script):
        return self.do("POST", "/execute/sync", {"script": script, "args": []})

    def find(self, path):
        found = self.do("POST", "/elements", {"using": "xpath", "value": path})
        return [element[ELEMENT] for element in found]

    def wait(self, path):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if found := self.find(path):
                return found[0]
            time.sleep(0.1)
        raise RuntimeError(f"{path} does not appear; the page says: {self.run('return document.body.innerText')}")

    def click(self, path):
        self.do("POST", f"/element/{self.wait(path)}/click", {})

    def type(self, path, text):
        self.do("POST", f"/element/{self.wait(path)}/value", {"text": text})

    def picture(self, file):
        file.write_bytes(base64.b64decode(self.do("GET", "/screenshot")))


def use(browser, address, pictures):
    browser.open(address)
    assert "token" not in browser.run("return location.href"), "the token stays in the address bar"
    browser.type("//textarea", NOTE + "\n")
    for _ in ("servers", "skills"):
        browser.click("//button[text()='Use it']")
        time.sleep(0.3)
    browser.wait("//strong[contains(., 'add_note wants to run')]")
    browser.picture(pictures / "1-ask.png")

    # Loaded anew in the middle of it, the page shows the same.
    browser.open(browser.run("return location.href"))
    browser.click("//button[text()='Allow once']")
    browser.wait("//strong[contains(., 'search_notes wants to run')]")
    browser.type("//input", "the archive is closed")
    browser.click("//button[text()='Deny']")
    browser.wait("//div[@class='tokens']")
    browser.picture(pictures / "2-done.png")
    assert browser.find("//div[@class='user'][contains(., '<b>and</b>')]"), "text of a message is not shown as text"
    assert not browser.find("//div[@id='lines']//b"), "text of a message became HTML"
    assert not browser.find("//div[contains(@class, 'card')]//button"), "a question that is closed has buttons"

    browser.type("//textarea", "Write a note again: fog.\n")
    browser.wait("//button[text()='Allow once']")
    browser.click("//button[@id='cancel']")
    browser.wait("//div[contains(., 'stopped by the user')]")
    browser.do("POST", "/window/rect", {"width": 420, "height": 800})
    browser.picture(pictures / "3-narrow.png")


def main():
    target, pictures = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        notes = {"FIELD_NOTES_SERVER": str(target / "field-notes"), "FIELD_NOTES_FILE": f"{folder}/notes.json"}
        project = str(ROOT / "examples/workspace")
        host = subprocess.Popen(
            [target / "web_host", "--project", project], env={**os.environ, **notes}, stdout=subprocess.PIPE, text=True
        )
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        try:
            address = next(line.split()[1] for line in host.stdout if line.startswith("open "))
            started = next(line for line in driver.stdout if "started successfully on port" in line)
            browser = Browser(started.rsplit(" ", 1)[1].strip().rstrip("."))
            try:
                use(browser, address, pictures)
            finally:
                browser.do("DELETE", "")
        finally:
            for process in (host, driver):
                process.terminate()
                process.wait(timeout=30)
        stored = json.loads(pathlib.Path(f"{folder}/notes.json").read_text())
        assert len(stored) == 1, f"one note was allowed, stored are {stored}"
    print("the web host works in Chromium")


main()
