// Small charts over the last hour. Each says its newest and its greatest value; the line is for the shape.
import { el, svg } from "./dom.js";
import { age, bytes, count, duration } from "./words.js";
import { t } from "./strings.js";

const width = 240, height = 36;

// covered names the time that samples cover.
export function covered({ samples: s, everyMillis }) {
  const span = s.at(-1).at - s[0].at + (everyMillis ?? 0);
  return span >= 59 * 60e3 ? t("last_hour") : t("last_time", { time: age(span) });
}

// spark draws values, of which undefined ones are gaps, against the times of samples.
export function spark(label, samples, values, say) {
  const known = values.filter((v) => v !== undefined);
  const most = Math.max(...known, 0);
  const from = samples[0].at, span = Math.max(samples.at(-1).at - from, 1);
  let d = "", pen = false;
  values.forEach((v, i) => {
    if (v === undefined) { pen = false; return; }
    const x = ((samples[i].at - from) / span) * width;
    const y = height - 2 - (most ? (v / most) * (height - 4) : 0);
    const alone = !pen && values[i + 1] === undefined; // of one sample there is a short line
    d += (pen ? "L" : "M") + (alone ? Math.min(Math.max(x - 1.5, 0), width - 3) : x).toFixed(1) + " " + y.toFixed(1) + (alone ? "h3" : "");
    pen = true;
  });
  const last = values.findLast((v) => v !== undefined);
  const words = t("chart_words", { last: last === undefined ? t("unknown") : say(last), most: say(most) });
  return el("figure", { class: "spark" }, el("figcaption", {}, el("span", {}, label), " ", el("b", {}, last === undefined ? t("unknown") : say(last)), " ", el("span", { class: "quiet" }, t("chart_most", { most: say(most) }))),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label + ": " + words }, svg("path", { d: `M0 ${height - 1}H${width}`, class: "base" }), svg("path", { d, class: "line" })));
}

export function healthCharts({ samples: s, everyMillis }) {
  const rate = (n) => (n < 10 && n % 1 ? n.toFixed(1) : count(Math.round(n))) + t("a_second");
  const perSecond = (f) => s.map((x) => f(x) / (everyMillis / 1000));
  const ms = (n) => (n ? duration(n) : "0 ms");
  return el("div", { class: "charts" },
    spark(t("chart_messages"), s, perSecond((x) => x.messages), rate),
    spark(t("chart_receipts"), s, s.map((x) => (x.receipts ? x.receiptMillis : undefined)), ms),
    spark(t("chart_again"), s, s.map((x) => x.redelivered), count),
    spark(t("chart_jobs"), s, s.map((x) => x.jobs), count),
    spark(t("chart_queue"), s, s.map((x) => x.queued), bytes),
    spark(t("chart_disk"), s, s.map((x) => x.disk), bytes),
    spark(t("chart_memory"), s, s.map((x) => x.resident || undefined), bytes));
}
