"""A client written from the wire contract alone: client.py URL ID MAIN all|silent

It says what it did as JSON lines and waits where its tester has to act; it trusts nothing but frames.
"""
import asyncio
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


async def everything():
    s = await Session.open()
    await s.hello()
    task = await s.named("Delegate", lambda f: f["targetAgentId"] == ME)
    await s.ack(task)
    report = await s.tell("WorkerReport", {"unit": "u1", "status": "done", "summary": "by hand", "re_msgId": task["msgId"]},
                          targetAgentId=task["agentId"], parentId=task["id"])
    await s.named("AckProcessed", lambda f: f["value"]["ackFor"] == report and f["agentId"] == task["agentId"])
    say("report", **{"from": task["agentId"]})

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
