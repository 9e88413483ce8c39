#!/usr/bin/env python3
"""A whole agent of an Asterism board, to start yours from: agent.py [URL] [ID]

URL is the board's socket, with ?key= (or peerKey=, upstreamKey=) where you were given one. It needs the package
websockets (Debian: python3-websockets). Put your work into work().
"""
import asyncio
import base64
import hashlib
import json
import sys
import time
import uuid

import websockets

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between attempts


async def work(task, files):
    """Is given the task and the files that came with it, {name, mime, data} each, and may give files back."""
    return f"looked at: {task}", files


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Agent:
    def __init__(self, url, me):
        self.url, self.me = url, me
        self.seen = {}  # msgIds that were dealt with, oldest first: a board may give a message again
        self.owed = {}  # msgId -> frame that the board has not acknowledged yet
        self.asked = {}  # msgId -> (frame, what waits for the board's own answer)
        self.tasks = set()
        self.wait = FIRST_WAIT

    async def live(self):
        """Holds a connection until the board wants us no more; returns why."""
        while True:
            self.ws, self.welcome, self.rejected = None, False, ""
            try:
                async with websockets.connect(self.url, max_size=16 << 20) as self.ws:
                    await self.send(type="HELLO", agentId=self.me, agentName=self.me, role="local",
                                    protocolVersion="0.3", capabilities=["ack-layer"])
                    async for data in self.ws:
                        try:
                            frame = json.loads(data)
                        except ValueError:
                            continue  # not ours to judge
                        await self.take(frame)
            except (OSError, websockets.WebSocketException, asyncio.TimeoutError):
                pass
            code = self.ws.close_code if self.ws else None
            if code in (4403, 4003):  # asking again would change nothing
                return f"refused: {self.rejected or self.ws.close_reason}"
            if self.welcome and code in (1000, 1005):
                return f"another client is {self.me} now"
            await asyncio.sleep(self.wait)
            self.wait = min(2 * self.wait, LONGEST_WAIT)

    async def send(self, **frame):
        try:
            await self.ws.send(json.dumps({"id": str(uuid.uuid4()), "timestamp": int(time.time() * 1000), **frame}))
        except websockets.ConnectionClosed:
            pass  # what must arrive is sent again after the reconnect

    async def tell(self, target, name, value, **more):
        """Sends what must arrive: again after each reconnect, until the board has acknowledged it."""
        msg_id = str(uuid.uuid4())
        self.owed[msg_id] = dict(type="CUSTOM", name=name, targetAgentId=target, msgId=msg_id, value=value, **more)
        await self.send(**self.owed[msg_id])

    async def ask(self, name, value):
        """Puts a question to the board itself, after a reconnect once more; returns the answer's value."""
        msg_id, answer = str(uuid.uuid4()), asyncio.get_running_loop().create_future()
        self.asked[msg_id] = dict(type="CUSTOM", name=name, msgId=msg_id, value=value), answer
        await self.send(**self.asked[msg_id][0])
        return await answer

    async def fetch_file(self, f, a):
        """Takes an attachment of a message from the board, piece by piece."""
        pieces, count = [], 1
        while len(pieces) < count:
            piece = await self.ask("ArtifactGet", {"artifact": a["sha256"], "chunk_index": len(pieces),
                                                   "of": f["msgId"], "from": f.get("agentId", "")})
            count = piece["chunk_count"]
            pieces.append(base64.b64decode(piece["data"]))
        data = b"".join(pieces)
        if sha256(data) != a["sha256"]:
            raise ValueError(f"{a.get('name')} is damaged")
        return {"name": a.get("name"), "mime": a.get("mime"), "data": data}

    async def give_file(self, file):
        """Puts a file to the board, from where an earlier attempt was cut off; returns how a message names it."""
        data, whole = file["data"], sha256(file["data"])
        state = await self.ask("ArtifactOffer", {"artifact": whole, "size": len(data)})
        while not state["complete"]:
            at, size = state["have"], state["chunk_size"]
            piece = data[at * size:(at + 1) * size]
            state = await self.ask("ArtifactPut", {"artifact": whole, "chunk_index": at, "encoding": "base64",
                                                   "data": base64.b64encode(piece).decode(), "sha256": sha256(piece)})
        return {"name": file["name"], "mime": file["mime"], "size": len(data), "sha256": whole, "source": "hub"}

    async def take(self, f):
        name, value = f.get("name"), f.get("value")
        value = value if isinstance(value, dict) else {}
        if name == "ConnectionRejected":
            self.rejected = f"{value.get('code')}: {value.get('reason')}"
        if name == "ConnectionInfo":
            # Only this says that the board has taken us; a board that refuses says SERVER_HELLO before.
            self.welcome, self.wait = True, FIRST_WAIT
            print(value["agentId"], "is", value["role"], flush=True)
            for frame in list(self.owed.values()) + [frame for frame, _ in self.asked.values()]:
                await self.send(**frame)
            return
        if not self.welcome:
            return
        if name in ("Ack", "AckProcessed"):
            self.owed.pop(value.get("ackFor"), None)
            return
        if name in ("ArtifactState", "ArtifactPiece"):
            _, answer = self.asked.pop(value.get("re_msgId"), (None, None))
            if answer:
                answer.set_result(value)
            return
        if name == "ServerNotice" and value.get("kind") == "refused":
            self.owed.pop(value.get("msgId"), None)
            _, answer = self.asked.pop(value.get("msgId"), (None, None))
            if answer:
                answer.set_exception(ValueError(value.get("text")))
            print(value.get("text"), file=sys.stderr)
        if f.get("targetAgentId") != self.me:
            return  # the roster, history
        sender, msg_id = f.get("agentId"), f.get("msgId")
        if name == "Ping":
            await self.send(type="CUSTOM", name="Pong", targetAgentId=sender, value={"for": f.get("id")})
            return
        if not msg_id:
            return
        # A program that must not lose a task writes it down before this line: from here on the board forgets it.
        await self.send(type="CUSTOM", name="AckProcessed", targetAgentId=sender, value={"ackFor": msg_id})
        if msg_id in self.seen:
            return
        self.seen[msg_id] = True
        if len(self.seen) > 1024:
            del self.seen[next(iter(self.seen))]
        if name != "Delegate":
            print(sender or f.get("source"), name, json.dumps(value), flush=True)
            return
        job = asyncio.create_task(self.carry_out(f, value))
        self.tasks.add(job)  # or it would be collected while it runs
        job.add_done_callback(self.tasks.discard)

    async def carry_out(self, f, value):
        task = value.get("task") or value.get("re") or value.get("text") or ""
        print(f["agentId"], "asks:", task, flush=True)
        report = {"unit": value.get("unit") or task[:60], "re_msgId": f["msgId"]}
        try:
            here = [a for a in value.get("attachments") or [] if a.get("source") == "hub"]
            summary, files = await work(task, [await self.fetch_file(f, a) for a in here])
            report.update(status="done", summary=summary, attachments=[await self.give_file(file) for file in files])
        except Exception as err:  # whatever the work says went wrong is the report
            report.update(status="blocked", summary=str(err))
        await self.tell(f["agentId"], "WorkerReport", report,
                        contextId=f.get("contextId") or f.get("threadId"), parentId=f.get("id"))


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else "ws://127.0.0.1:7878/ws"
    me = sys.argv[2] if len(sys.argv) > 2 else "agent-py"
    try:
        sys.exit(asyncio.run(Agent(url, me).live()))
    except KeyboardInterrupt:
        pass


main()
