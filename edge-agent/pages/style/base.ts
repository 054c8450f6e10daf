/**
 * Colours, fonts and common elements. The pages are dark by default, and light if the browser prefers light. Signal
 * colours are the same in both schemes.
 */
export const BASE = `
:root {
  color-scheme: dark light;
  --ink: #f1f4f7; --paper: #101418; --raised: #1b2127; --soft: #b3bdc8; --line: #4a5561; --accent: #8fc1ff; --on-accent: #06213f;
  --good: #6ee0a4; --warn: #ffc65c; --bad: #ff9d94;
  --green: #0b6b3a; --red: #a3161b; --amber: #ffbe3d; --blue: #1d4f91; --on-strong: #ffffff; --on-amber: #1c1300;
}
@media (prefers-color-scheme: light) {
  :root {
    --ink: #14181c; --paper: #f5f7f9; --raised: #ffffff; --soft: #4a5561; --line: #8a95a1; --accent: #0a4fb3; --on-accent: #ffffff;
    --good: #0a5f35; --warn: #7a4b00; --bad: #a3161b;
  }
}
* { box-sizing: border-box }
[hidden] { display: none !important }
html { font-size: clamp(18px, 10px + 1vw, 30px); height: 100% }
body {
  margin: 0; min-height: 100%; display: flex; flex-direction: column; font: 1rem/1.35 system-ui, 'Liberation Sans', sans-serif;
  color: var(--ink); background: var(--paper)
}
h1, h2, p, ul, ol { margin: 0; padding: 0 }
ul, ol { list-style: none }
h1 { font-size: 1.15rem; line-height: 1.15; overflow-wrap: anywhere; hyphens: auto }
main { flex: 1; display: flex; flex-direction: column; min-height: 0 }
code, .ids { font-family: ui-monospace, 'DejaVu Sans Mono', monospace; overflow-wrap: anywhere }
.soft { color: var(--soft) }
.ids { color: var(--soft); font-size: .62rem }
.ids span { display: inline-block; margin-right: .8em }
.aloud { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.screen { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center } .gate .screen button { min-height: 48px }
.row { display: flex; gap: .6rem; flex-wrap: wrap; align-items: center }

button, .button {
  display: inline-flex; flex: none; align-items: center; justify-content: center; min-height: 56px; min-width: 56px; padding: .2rem 1.1rem;
  cursor: pointer; font: inherit; font-weight: 600; text-decoration: none; border-radius: 14px;
  border: 2px solid var(--line); background: var(--raised); color: var(--ink)
}
button.main { min-height: 80px; background: var(--accent); border-color: var(--accent); color: var(--on-accent) }
button:disabled { cursor: default; opacity: .55 }
input {
  font: inherit; min-height: 56px; padding: .2rem .8rem; border-radius: 14px; border: 2px solid var(--line);
  background: var(--raised); color: var(--ink)
}
:focus-visible { outline: 4px solid var(--accent); outline-offset: 3px }

.bar {
  display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; justify-content: space-between; padding: .6rem 1.1rem;
  background: var(--raised); border-bottom: 1px solid var(--line)
}
.badges { display: flex; flex-wrap: wrap; gap: .4rem; font-size: .8rem }
.badge { padding: .15rem .7rem; border: 2px solid currentColor; border-radius: 999px; font-weight: 600; color: var(--good) }
.badge::before { content: '●' / ''; margin-right: .45em }
.badge[data-tone='warn'] { color: var(--warn) } .badge[data-tone='warn']::before { content: '▲' / '' }
.badge[data-tone='bad'] { color: var(--bad) } .badge[data-tone='bad']::before { content: '■' / '' }
.banner { padding: .55rem 1.1rem; font-weight: 600; overflow-wrap: anywhere; background: var(--amber); color: var(--on-amber) }
.banner[data-tone='good'] { background: var(--green); color: var(--on-strong) }
.banner[data-tone='bad'] { background: var(--red); color: var(--on-strong) }

.stage {
  flex: 1; display: flex; flex-direction: column; align-items: center; justify-content: safe center; min-height: 0; padding: 1.2rem;
  text-align: center
}
/* A screen of a lane never scrolls. The page's script makes the texts of the stage smaller (--fit) if they have no room. */
@media (min-width: 601px) {
  .station, .gate { height: 100dvh } .station .stage, .gate .stage { overflow: hidden }
}
.icon {
  width: clamp(3rem, 16vh, 11rem); height: auto; fill: none; stroke: currentColor; stroke-width: 8; stroke-linecap: round;
  stroke-linejoin: round
}
.picture { display: inline-flex; width: clamp(5rem, 16vh, 11rem); aspect-ratio: 1; padding: .35rem; border-radius: 16px; background: #ffffff }
.picture img { width: 100%; height: 100%; object-fit: contain }
.picture svg { width: 100%; fill: none; stroke: #5b6670; stroke-width: 4; stroke-linejoin: round; stroke-linecap: round }
.picture .gone { display: none }
.icons .icon { display: none; border: .45rem solid currentColor; border-radius: 50%; padding: .7rem }
.headline, .idle h2 {
  font-size: calc(var(--fit, 1) * var(--fit, 1) * clamp(1.9rem, min(7.5vw, 12vh), 6rem)); line-height: 1.05; font-weight: 800; overflow-wrap: anywhere;
  hyphens: auto
}
/* At least 47 px on a screen of 1024 × 600, which is 7 mm on 7 inches: readable at 2 m. */
.message, .advice, .product, .item {
  font-size: calc(var(--fit, 1) * clamp(1.15rem, min(5.2vw, 8.8vh), 3.6rem)); line-height: 1.2; font-weight: 600; text-wrap: balance
}
.advice { font-weight: 400 } .product, .item { font-weight: 800; overflow-wrap: anywhere }
@media (min-width: 601px) and (orientation: portrait) {
  .headline, .idle h2 { font-size: calc(var(--fit, 1) * 12vw) }
  .message, .advice, .product, .item { font-size: calc(var(--fit, 1) * 6vw) }
  .icon { width: 26vw } .picture { width: 30vw }
}
`
