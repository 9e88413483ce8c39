"""A client written from the wire contract alone: client.py URL ID MAIN all|silent

It says what it did as JSON lines and waits where its tester has to act; it trusts nothing but frames.
"""
import asyncio
import base64
import hashlib
import json
import sys
import time

import websockets

URL, ME, MAIN, MODE = sys.argv[1:5]
count = 0


def say(did, **more):
    print(json.dumps({"did": did, **more}), flush=True)


async def told():
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    return line.strip()


class Session:
    """One connection. Frames wait in got until someone takes them."""

    def __init__(self, ws, watch=None):
        self.ws, self.watch, self.got, self.more = ws, watch, [], asyncio.Event()
        self.reading = asyncio.create_task(self.read())

    @classmethod
    async def open(cls, watch=None):
        return cls(await websockets.connect(URL), watch)

    async def read(self):
        try:
            async for data in self.ws:
                self.got.append(json.loads(data))
                self.more.set()
                if self.watch:
                    self.watch(self.got[-1])
        except websockets.ConnectionClosed:
            pass  # its code is asked for later

    async def named(self, name, is_it=lambda f: True):
        while True:
            for f in self.got:
                if f.get("name") == name and is_it(f):
                    self.got.remove(f)
                    return f
            self.more.clear()
            await self.more.wait()

    async def closed(self):
        await self.reading
        await self.ws.wait_closed()
        return self.ws.close_code

    async def send(self, **frame):
        global count
        count += 1
        await self.ws.send(json.dumps({"id": f"{ME}-{count}", "timestamp": int(time.time() * 1000), **frame}))

    async def tell(self, name, value, **more):
        msg_id = f"{ME}-m{time.time_ns()}"
        await self.send(type="CUSTOM", name=name, msgId=msg_id, value=value, **more)
        return msg_id

    async def ack(self, f):
        to = {"targetAgentId": f["agentId"]} if f.get("agentId") else {}
        await self.send(type="CUSTOM", name="AckProcessed", value={"ackFor": f["msgId"]}, **to)

    async def hello(self, capabilities=("ack-layer",)):
        await self.send(type="HELLO", agentId=ME, agentName=ME, protocolVersion="0.3", capabilities=list(capabilities))
        info = await self.named("ConnectionInfo")
        say("hello", role=info["value"]["role"], keyed=info["value"]["keyed"])


def sha(data):
    return hashlib.sha256(data).hexdigest()


async def ask(s, name, value):
    """Sends a verb to the hub and takes its answer."""
    me = await s.tell(name, value)

    def mine(f):
        v = f.get("value")
        return isinstance(v, dict) and (v.get("re_msgId") == me or f.get("name") == "ServerNotice" and v.get("msgId") == me)
    while True:
        for f in s.got:
            if mine(f):
                s.got.remove(f)
                if f["name"] == "ServerNotice":
                    raise RuntimeError(f["value"]["text"])
                return f["value"]
        s.more.clear()
        await s.more.wait()


async def fetch(s, f, a):
    """Takes an attachment at the hub, piece by piece."""
    whole, count = b"", 1
    index = 0
    while index < count:
        v = await ask(s, "ArtifactGet", {"artifact": a["sha256"], "chunk_index": index, "of": f["msgId"]})
        piece, count = base64.b64decode(v["data"]), v["chunk_count"]
        assert sha(piece) == v["sha256"], f"piece {index} is damaged"
        whole += piece
        index += 1
    assert sha(whole) == a["sha256"] and len(whole) == a["size"], "it is not what was named"
    return whole


async def give(s, data, up_to=1 << 30):
    """Puts an attachment to the hub from where it is, and stops before piece up_to."""
    whole = sha(data)
    state = await ask(s, "ArtifactOffer", {"artifact": whole, "size": len(data)})
    began, size = state["have"], state["chunk_size"]
    for i in range(began, min(state["chunk_count"], up_to)):
        piece = data[i * size:(i + 1) * size]
        state = await ask(s, "ArtifactPut", {"artifact": whole, "chunk_index": i, "encoding": "base64",
                                             "data": base64.b64encode(piece).decode(), "sha256": sha(piece)})
    named = {"name": "back.bin", "mime": "application/x-back", "size": len(data), "sha256": whole, "source": "hub"}
    return began, state["complete"], named


async def attachments(s):
    """Takes 20 MiB, and gives them back the other way round over two connections."""
    f = await s.named("Request", lambda f: f["value"].get("attachments"))
    await s.ack(f)
    whole = await fetch(s, f, f["value"]["attachments"][0])
    say("fetched", bytes=len(whole), name=f["value"]["attachments"][0]["name"])
    whole = whole[::-1]
    await give(s, whole, 30)
    await s.ws.close()
    await s.closed()
    s = await Session.open()
    await s.hello()
    began, complete, named = await give(s, whole)
    msg_id = await s.tell("Report", {"summary": "the other way round", "attachments": [named], "re_msgId": f["msgId"]},
                          targetAgentId=f["agentId"])
    say("gave", began=began, complete=complete, msgId=msg_id)
    return s


async def everything():
    s = await Session.open()
    await s.hello()
    task = await s.named("Delegate", lambda f: f["targetAgentId"] == ME)
    await s.ack(task)
    report = await s.tell("WorkerReport", {"unit": "u1", "status": "done", "summary": "by hand", "re_msgId": task["msgId"]},
                          targetAgentId=task["agentId"], parentId=task["id"])
    await s.named("AckProcessed", lambda f: f["value"]["ackFor"] == report and f["agentId"] == task["agentId"])
    say("report", **{"from": task["agentId"]})
    s = await attachments(s)

    await s.tell("RoomCreate", {"topic": "plan", "participants": [MAIN]})
    room = (await s.named("RoomCreated"))["value"]["roomId"]
    word = await s.tell("Note", {"text": f"{ME} in the room"}, roomId=room)
    await s.named("Ack", lambda f: f["value"]["ackFor"] == word and f["value"]["from"] == f"room:{room}")
    say("room", roomId=room)
    answer = await s.named("Note", lambda f: f.get("roomId") == room)
    await s.ack(answer)
    say("heard", text=answer["value"]["text"], speaker=answer["speakerClass"])
    await s.tell("RoomLeave", {"roomId": room})
    await s.named("RoomLeft", lambda f: f["value"]["agentId"] == ME)
    await s.tell("Note", {"text": "from outside"}, roomId=room)
    await s.named("RoomGuard", lambda f: f["value"]["rule"] == "not-participant")
    say("left")

    prompt = f"{ME}-q"
    await s.tell("SelectionPrompt", {"promptId": prompt, "text": "Which?", "options": [{"label": "red"}, {"label": "blue"}]})
    chosen = await s.named("SelectionAnswer", lambda f: f["value"]["promptId"] == prompt)
    if chosen.get("msgId"):
        await s.ack(chosen)
    say("answered", labels=chosen["value"]["selectedLabels"])

    await s.ws.close()
    await s.closed()
    say("away")
    await told()
    s = await Session.open()
    await s.hello()
    mail = await s.named("Request")
    await s.ack(mail)
    say("mail", text=mail["value"]["text"])

    why = await s.named("ConnectionRejected")
    say("revoked", code=await s.closed(), why=why["value"]["code"])
    s = await Session.open()
    say("refused", code=await s.closed(), shown=sum(f.get("name") != "ConnectionRejected" for f in s.got))


async def silent():
    """Acknowledges nothing, and connects again whenever it is told to."""
    def watch(f):
        if f.get("targetAgentId") == ME and f.get("msgId") and f.get("name") == "Request":
            say("got", msgId=f["msgId"])
    while True:
        s = await Session.open(watch)
        await s.hello(())
        order = await told()
        # An answer behind all that came, and behind the ping by which the hub learns that it was read: who goes between
        # the two may be given the last messages again, for the hub cannot know.
        await s.send(type="CUSTOM", name="RequestChannelHistory", value={"channelKey": ME})
        await s.named("ChannelHistory")
        await s.ws.close()
        await s.closed()
        say("away")
        if order == "end":
            return


asyncio.run(silent() if MODE == "silent" else everything())
