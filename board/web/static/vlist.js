// A list of which only what can be seen is in the document. Rows have heights of their own, measured once they are
// drawn. What somebody looks at stays where it is whatever comes before or after it.

const beyond = 600; // px drawn outside the window, so that a wheel step shows no gap
const spare = 240; // px of it that are left when more is drawn: most steps draw nothing

export class VList {
  // how: key(item), make(item), update(row, item), estimate: px of a row never seen.
  constructor(scroller, list, how) {
    this.scroller = scroller;
    this.list = list;
    this.how = how;
    this.items = [];
    this.heights = new Map();
    this.rows = new Map();
    this.atEnd = true;
    this.width = 0;
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.resized()).observe(scroller);
  }

  resized() {
    if (this.width !== this.scroller.clientWidth) {
      this.width = this.scroller.clientWidth;
      this.heights.clear(); // lines break elsewhere now
    }
    this.draw();
  }

  scrolled() {
    const s = this.scroller;
    this.atEnd = s.scrollHeight - s.scrollTop - s.clientHeight < 24;
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.draw(false); });
    }
    this.how.moved?.();
  }

  height(item) {
    return this.heights.get(this.how.key(item)) ?? this.how.estimate;
  }

  set(items) {
    this.items = items;
    if (this.heights.size > 4 * items.length + 2000) {
      const kept = new Set(items.map(this.how.key));
      for (const k of this.heights.keys()) if (!kept.has(k)) this.heights.delete(k);
    }
    this.draw();
  }

  // span says which items to draw: what can be seen, and the row that has the focus if it is near.
  span() {
    const s = this.scroller;
    const top = (this.stick() ? Infinity : s.scrollTop - this.list.offsetTop) - beyond;
    const n = this.items.length;
    const sums = new Float64Array(n + 1);
    for (let i = 0; i < n; i++) sums[i + 1] = sums[i] + this.height(this.items[i]);
    const from = Math.min(top, sums[n] - s.clientHeight - beyond);
    let first = 0, last = 0;
    while (first < n && sums[first + 1] < from) first++;
    for (last = first; last < n && sums[last] < from + s.clientHeight + 2 * beyond;) last++;
    const active = /** @type {HTMLElement} */ (document.activeElement?.closest("[data-key]"));
    if (active?.parentNode === this.list) {
      const at = this.items.findIndex((item) => String(this.how.key(item)) === active.dataset.key);
      if (at >= 0 && at < first && first - at < 100) first = at;
      if (at >= last && at - last < 100) last = at + 1;
    }
    return { first, last, before: sums[first], after: sums[n] - sums[last] };
  }

  stick() {
    return this.atEnd && this.how.sticks?.();
  }

  // anchor is a row that can be seen, and where.
  anchor() {
    const top = this.scroller.getBoundingClientRect().top;
    for (const row of this.list.children) {
      const box = row.getBoundingClientRect();
      if (box.bottom > top) return { key: row.dataset.key, at: box.top };
    }
    return null;
  }

  // draw brings the document up to date; rows that are there already only if something of them may have changed.
  draw(all = true) {
    if (this.scroller.clientHeight === 0) return; // not shown: drawn when it gets a size
    const stick = this.stick();
    if (!all && !stick && this.covers()) return;
    const whole = !this.how.sticks && this.scroller.scrollTop <= this.list.offsetTop; // its first row may be seen: what is new pushes down
    const anchor = stick || whole ? null : this.anchor();
    if (anchor) this.follow(anchor);
    for (let pass = 0; pass < 3; pass++) { // heights that were guessed may show other rows
      if (!this.place(anchor, stick, all && pass === 0)) break;
    }
  }

  // covers says whether what is drawn reaches far enough beyond the window, both ways.
  covers() {
    const d = this.drawn;
    if (d?.items !== this.items) return false;
    const top = this.scroller.scrollTop - this.list.offsetTop;
    return (d.first === 0 || top - spare >= d.top) && (d.last === d.items.length || top + this.scroller.clientHeight + spare <= d.bottom);
  }

  // follow goes where the anchor is now, as far as heights are known: what came before it may have pushed it out of what
  // is drawn.
  follow(anchor) {
    let top = 0;
    for (const item of this.items) {
      if (String(this.how.key(item)) === anchor.key) {
        const at = this.list.offsetTop + top - (anchor.at - this.scroller.getBoundingClientRect().top);
        if (Math.abs(at - this.scroller.scrollTop) < 1) return;
        this.list.style.paddingBottom = this.scroller.clientHeight + at + "px"; // so that there is such a place
        this.scroller.scrollTop = at;
        return;
      }
      top += this.height(item);
    }
  }

  place(anchor, stick, all) {
    const { first, last, before, after } = this.span();
    const wanted = this.items.slice(first, last);
    const seen = new Set(), drawn = new Set();
    let at = this.list.firstElementChild;
    for (const item of wanted) {
      const key = String(this.how.key(item));
      seen.add(key);
      let row = this.rows.get(key);
      let stale = all;
      if (!row) {
        stale = true;
        row = this.how.make(item);
        row.dataset.key = key;
        this.rows.set(key, row);
      }
      if (stale) {
        this.how.update(row, item);
        drawn.add(key);
      }
      if (row === at) at = at.nextElementSibling;
      else this.list.insertBefore(row, at);
    }
    for (const [key, row] of this.rows) {
      if (seen.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    this.list.style.paddingTop = before + "px";
    this.list.style.paddingBottom = after + "px";
    let changed = false;
    for (const item of wanted) {
      const key = this.how.key(item);
      if (!drawn.has(String(key)) && this.heights.has(key)) continue; // as high as it was
      const h = this.rows.get(String(key)).getBoundingClientRect().height;
      if (h > 0 && Math.abs((this.heights.get(key) ?? -1) - h) > 0.5) {
        this.heights.set(key, h);
        changed = true;
      }
    }
    this.drawn = { items: this.items, first, last, top: before, bottom: wanted.reduce((at, item) => at + this.height(item), before) };
    if (stick) this.scroller.scrollTop = this.scroller.scrollHeight;
    else if (anchor) {
      const row = this.rows.get(anchor.key);
      const moved = row ? row.getBoundingClientRect().top - anchor.at : 0;
      if (Math.abs(moved) >= 1) this.scroller.scrollTop += moved;
    }
    return changed;
  }

  // show brings an item into the window.
  show(key, block = 0.3) {
    const at = this.items.findIndex((item) => String(this.how.key(item)) === String(key));
    if (at < 0) return null;
    this.atEnd = false;
    let top = 0;
    for (let i = 0; i < at; i++) top += this.height(this.items[i]);
    this.scroller.scrollTop = top + this.list.offsetTop - this.scroller.clientHeight * block;
    this.draw();
    return this.rows.get(String(key)) ?? null;
  }

  // reading is what somebody reads, and how far below the top: put shows it there again.
  reading() {
    const seen = this.anchor();
    return seen && { key: seen.key, below: seen.at - this.scroller.getBoundingClientRect().top };
  }

  put({ key, below }) {
    const row = this.show(key, 0);
    if (!row) return;
    this.scroller.scrollTop += row.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - below;
    this.draw();
  }

  // beside is the row before or after one, drawn and in the window; for j and k.
  beside(row, by) {
    const at = row ? this.items.findIndex((item) => String(this.how.key(item)) === row.dataset.key) : -1;
    const next = at < 0 ? (by > 0 ? 0 : this.items.length - 1) : Math.max(0, Math.min(this.items.length - 1, at + by));
    if (next < 0 || next >= this.items.length) return null;
    const key = String(this.how.key(this.items[next]));
    return this.rows.get(key) ?? this.show(key);
  }

  end() {
    this.atEnd = true;
    this.draw();
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.draw();
  }
}
