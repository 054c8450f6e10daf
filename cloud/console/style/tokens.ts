/**
 * Design tokens: colours, sizes, distances. Pages and components use only these. `alarm` is the only red, and only an
 * alarm uses it: a rejected field or a final action is `warn` or plain.
 */
const LIGHT = `
  --ink: #17222b; --ink-soft: #50606d; --paper: #f4f6f7; --surface: #ffffff; --raised: #eaeff1; --line: #d3dbe0; --field-line: #71818e;
  --accent: #0b5f66; --accent-hover: #084c52; --on-accent: #ffffff; --accent-soft: #dcefef; --side: #102a31; --side-ink: #d5e3e6; --side-soft: #93aeb4; --side-on: #1f444d;
  --ok: #0d6240; --ok-soft: #dff2e8; --warn: #784700; --warn-soft: #fdefd3; --info: #1d4f91; --info-soft: #e3edfb;
  --alarm: #a61022; --alarm-soft: #fde7e9; --on-alarm: #ffffff;
  --test: #ffc83d; --on-test: #241a00; --shadow: 0 1px 2px rgb(16 42 49 / .06), 0 2px 10px rgb(16 42 49 / .05);
  --shadow-high: 0 10px 34px rgb(16 42 49 / .24);
  --chart-1: #0b5f66; --chart-2: #7a9bd8; --chart-3: #c9923a; --chart-4: #8a7bb5;`

const DARK = `
  --ink: #e6edf0; --ink-soft: #a3b4bd; --paper: #0e1518; --surface: #162024; --raised: #1f2c31; --line: #2c3b41; --field-line: #738891;
  --accent: #6fcdd2; --accent-hover: #93dde1; --on-accent: #05282b; --accent-soft: #16393d; --side: #0a1114; --side-ink: #cbd9dd; --side-soft: #8ea4ab; --side-on: #1b3036;
  --ok: #7ad9aa; --ok-soft: #123226; --warn: #f5c170; --warn-soft: #38290f; --info: #9dc2f7; --info-soft: #17294a;
  --alarm: #ff8e98; --alarm-soft: #421218; --on-alarm: #3a0008;
  --test: #ffc83d; --on-test: #241a00; --shadow: 0 1px 2px rgb(0 0 0 / .4); --shadow-high: 0 10px 34px rgb(0 0 0 / .6);
  --chart-1: #6fcdd2; --chart-2: #8fb0ee; --chart-3: #e3b15f; --chart-4: #b4a6e0;`

/** Type scale (1.2): small, text, large, heading 2, heading 1, figure. */
export const TOKENS = `
:root { color-scheme: light dark; ${LIGHT}
  --small: .8125rem; --text: .9375rem; --large: 1.0625rem; --h2: 1.1875rem; --h1: 1.625rem; --figure: 1.75rem;
  --font: system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace;
  --gap-1: .25rem; --gap-2: .5rem; --gap-3: .75rem; --gap-4: 1rem; --gap-5: 1.5rem; --gap-6: 2rem;
  --radius: .625rem; --radius-small: .375rem; --touch: 2.75rem; --bar: 3.75rem; --side-width: 15.5rem; }
@media (prefers-color-scheme: dark) { :root { ${DARK} } }
`
