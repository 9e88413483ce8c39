// newMsgID is a UUID of version 7; crypto.randomUUID is missing where a board is served without TLS.
export function newMsgID(now) {
  const raw = crypto.getRandomValues(new Uint8Array(16));
  let ms = BigInt(now);
  for (let i = 5; i >= 0; i--) { raw[i] = Number(ms & 255n); ms >>= 8n; }
  raw[6] = 0x70 | (raw[6] & 0x0f);
  raw[8] = 0x80 | (raw[8] & 0x3f);
  const hex = [...raw].map((b) => b.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
