// What a browser keeps for its person between visits: switches, what was set aside. A browser that keeps nothing forgets.

const prefix = "aster.";

export function kept(name) {
  try { return localStorage.getItem(prefix + name); } catch { return null; }
}

export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(prefix + name);
    else localStorage.setItem(prefix + name, value);
  } catch { /* it lives as long as the page then */ }
}
