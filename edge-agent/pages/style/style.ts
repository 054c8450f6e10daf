/** The station page: prompt, full-width results, input field, operator. */
const STATION = `
.part { display: none; flex-direction: column; align-items: center; gap: .6rem; width: 100% }
[data-view='idle'] > .idle, [data-view='busy'] > .busy, [data-view='result'] > .result { display: flex }
.signs, .words { display: flex; flex-direction: column; align-items: center; gap: .5rem } .words { gap: .35rem }
@media (min-width: 601px) and (orientation: landscape) {
  [data-view='result'] > .result { display: grid; grid-template: auto auto / minmax(10rem, 22%) 1fr; gap: 1rem 1.2rem; align-content: center }
  .words { grid-column: 2; grid-row: 1 / 3 } .signs { align-self: end }
  .result .actions { flex-direction: column; align-self: start; align-items: stretch }
}
.receipt { stroke-width: 3; color: var(--accent) }
.idle .message { color: var(--soft); font-weight: 400 }
.last { min-height: 1.4em; color: var(--soft) }
.station [data-view='result'][data-tone='granted'] { background: var(--green); color: var(--on-strong) }
.station [data-view='result'][data-tone='refused'] { background: var(--red); color: var(--on-strong) }
.station [data-view='result'][data-tone='staff'], .station [data-view='result'][data-tone='unsure'] {
  background: var(--amber); color: var(--on-amber)
}
.station [data-view='result'][data-tone='note'] { background: var(--blue); color: var(--on-strong) }
[data-tone='granted'] .icon-granted, [data-tone='refused'] .icon-refused, [data-tone='staff'] .icon-staff,
[data-tone='unsure'] .icon-unsure, [data-tone='note'] .icon-note { display: block }
.left { font-size: max(var(--least), var(--fit, 1) * clamp(1.5rem, min(7vw, 9vh), 4rem)); font-weight: 800; line-height: 1.1 }
.actions { display: flex; flex-wrap: wrap; justify-content: center; gap: .8rem; margin-top: .6rem }
.result button { border-color: currentColor; background: transparent; color: inherit; min-height: 76px; min-width: 9rem }
.result button.main { background: #ffffff; border-color: #ffffff; color: #14181c; font-size: 1.25rem; padding: .2rem 2rem }
[data-tone='staff'] button.main, [data-tone='unsure'] button.main { background: #1c1300; border-color: #1c1300; color: #ffffff }
.result button:focus-visible { outline-color: currentColor }
.result button.main:focus-visible { outline-color: var(--on-strong) }
[data-tone='staff'] button.main:focus-visible, [data-tone='unsure'] button.main:focus-visible { outline-color: var(--on-amber) }

.station footer {
  display: flex; flex-wrap: wrap; gap: .7rem 1.5rem; align-items: flex-end; padding: .7rem 1.1rem; background: var(--raised);
  border-top: 1px solid var(--line)
}
.typed { flex: 1 1 18rem; min-width: 0 } @media (min-width: 900px) { .station footer { flex-wrap: nowrap } .typed { flex-basis: 8rem; min-width: 16rem } }
/* All controls are in one line, whatever the language and the name of the operator. */
@media (min-width: 900px) { .station :is(.screen, .operator) { flex-wrap: nowrap } .station .operator { min-width: 0 } .station footer > :is(.screen, .language) { flex: none } .station .operator p { min-width: 0; overflow-wrap: anywhere } .station footer button { white-space: nowrap } }
@media (min-width: 900px) and (max-width: 1300px) { .station footer { gap: .5rem } .station footer button { padding: .2rem .5rem } .station .language { padding: 0 .2rem } .station .operator { align-items: flex-end } .station .operator p { font-size: .8rem; line-height: 1.2 } .typed { min-width: 13rem } }
.typed label { display: block; font-size: .8rem; color: var(--soft) }
.typed .row { flex-wrap: nowrap }
.typed input { flex: 1; width: 100%; min-width: 0; background: var(--paper) }
.operator { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center } .operator p { font-weight: 600 }
.language { display: inline-flex; align-items: center; min-height: 56px; padding: 0 .5rem; color: var(--accent) }

dialog {
  width: min(30rem, calc(100vw - 1.5rem)); max-height: calc(100vh - 1.5rem); padding: 1.1rem; border: 2px solid var(--line);
  border-radius: 20px; background: var(--paper); color: var(--ink)
}
dialog::backdrop { background: rgb(0 0 0 / .7) }
.dialog-head { display: flex; gap: 1rem; align-items: center; justify-content: space-between; margin-bottom: .6rem }
.dialog-head h2 { font-size: 1.3rem; overflow-wrap: anywhere }
.alert { min-height: 1.4em; margin-bottom: .4rem; font-weight: 600; color: var(--bad) }
.names { display: grid; gap: .5rem; margin-bottom: .6rem }
.names button {
  width: 100%; min-height: 72px; justify-content: space-between; font-size: 1.1rem; overflow-wrap: anywhere; text-align: left
}
[data-slot='pin'] { width: 100%; min-height: 72px; font-size: 2rem; letter-spacing: .4em; text-align: center }
.pad { display: grid; grid-template-columns: repeat(3, 1fr); gap: .5rem; margin: .6rem 0 }
.pad button { min-height: 76px; font-size: 1.5rem }
@media (max-height: 820px) { .pad button { min-height: 72px } [data-slot='pin'] { min-height: 60px } }
@media (max-width: 600px) {
  .bar { padding: .45rem .7rem }
  .badges { gap: .3rem; font-size: .7rem }
  .badge { padding: .1rem .5rem }
  .stage { padding: .8rem }
  .part { gap: .45rem }
  .station footer { padding: .6rem .7rem }
  .typed { flex-basis: 100% }
  .language { margin-left: auto }
  .actions { width: 100%; flex-wrap: nowrap; gap: .5rem }
  .result button { flex: 1 1 auto; min-width: 0; padding: .2rem .5rem }
  .result button.main { flex-grow: 2; padding: .2rem .6rem; font-size: 1.1rem }
}
@media (max-height: 720px) {
  /* A result needs the whole screen; its buttons are enough for what may come next, and the link of the language. */
  .station:has([data-view='result']) footer { position: absolute; left: .5rem; bottom: .5rem; padding: 0; border: 1px solid var(--line); border-radius: 12px }
  .station:has([data-view='result']) footer > :not(.language) { display: none }
  .station:has([data-view='result']) .language { padding: .2rem .8rem }
}
@media (max-height: 620px) {
  .bar { padding: .3rem 1.1rem }
  .station footer { padding: .4rem 1.1rem }
  .typed label { font-size: .7rem }
  .part { gap: .3rem }
  .actions { margin-top: .2rem }
  .result button { min-height: 72px }
  .stage { padding: .5rem }
  dialog { padding: .5rem .9rem }
  .dialog-head { margin: 0 }
  .alert { min-height: 1.2em; margin: 0 0 .2rem }
  .pad { gap: .3rem; margin: .4rem 0 }
}

.list form { display: grid; grid-template-columns: minmax(0, 1fr); gap: .5rem } .list form .row { flex-wrap: nowrap } .list input { flex: 1; min-width: 0 }
.list h2 { font-size: 1.2rem; margin-top: .6rem } .list h3 { font-size: 1rem; margin: 0 } .list pre {
  margin: .3rem 0 0; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: 10px; font-size: .72rem; white-space: pre-wrap;
  overflow-wrap: anywhere; user-select: all
}
.list label { display: grid; gap: .2rem; font-weight: 600 } .list select {
  font: inherit; min-height: 56px; width: 100%; padding: .2rem .8rem; border-radius: 14px; border: 2px solid var(--line);
  background: var(--raised); color: var(--ink)
}
.list textarea {
  width: 100%; margin: .3rem 0 0; padding: .6rem .8rem; border: 2px solid var(--line); border-radius: 10px; font: .85rem/1.4 ui-monospace, monospace;
  color: inherit; background: var(--paper); overflow-wrap: anywhere
}
.list main { max-width: 44rem; width: 100%; margin: 0 auto; padding: 1.2rem; gap: .8rem; flex: none } .list h1 { font-size: 1.8rem }
.list fieldset { display: grid; gap: .5rem; min-width: 0; margin: .3rem 0 0; padding: .7rem .9rem .9rem; border: 2px solid var(--line); border-radius: 14px }
.list legend { padding: 0 .4rem; font-weight: 700 } .settings { display: grid; gap: .7rem .9rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); align-items: start } .field .ids { font-size: .72rem; font-weight: 400 }
.list summary { min-height: 56px; padding: .75rem 0; font-weight: 600; cursor: pointer; color: var(--accent) } .list details.section > summary { font-size: 1.1rem }
.field { display: grid; gap: .2rem; min-width: 0 } .list [aria-invalid='true'] { border-color: var(--bad) } .field-fault { font-weight: 400; color: var(--bad); overflow-wrap: anywhere }
.list .notice { padding: .7rem .9rem; border: 2px solid var(--warn); border-radius: 14px }
.list .banner { display: grid; gap: .5rem; border-radius: 14px } .list .banner .next { font-weight: 400 } .list li .banner { margin-block: .6rem }
.devices { display: grid; gap: .8rem }
.list footer { max-width: 44rem; width: 100%; margin: 0 auto; padding: 0 1.2rem 1rem } .list .language { padding-left: 0 }
.steps { display: grid; gap: .8rem; padding-left: 1.4rem; list-style: decimal }
.devices li { padding: .9rem 1.1rem; border: 2px solid var(--line); border-radius: 16px; background: var(--raised) }
.devices h2 { font-size: 1.2rem }
.devices .row { margin-top: .6rem }
.devices .button { min-height: 72px }
`

/** The display at the gate: a headline that is readable from a distance, and the last decisions. */
const GATE = `
.gate .stage { gap: .5rem }
.gate .headline { text-wrap: balance }
.gate .icon { width: calc(var(--fit, 1) * clamp(4rem, 19vh, 15rem)) }
/* In an emergency people see nothing but the way out. */
.gate:has([data-tone='way_out']) > :is(header, aside) { display: none }
.gate:has([data-tone='way_out']) > main { grid-column: 1 / -1; grid-row: 1 / -1 }
.gate .stage[data-tone='way_out'] .icon { width: min(42vh, 50vw); border: none; padding: 0 }
.gate .stage[data-tone='way_out'] .headline { font-size: calc(var(--fit, 1) * min(14vw, 20vh)) }
[data-tone='way_out'] .icon-way_out { display: block }
.gate .stage[data-tone='way_out'], .gate .stage[data-tone='green'] { background: var(--green); color: var(--on-strong) }
.gate .stage[data-tone='amber'], .gate .stage[data-tone='lost'] { background: var(--amber); color: var(--on-amber) }
.gate .stage[data-tone='alarm'] { background: var(--red); color: var(--on-strong) }
[data-tone='green'] .icon-green, [data-tone='amber'] .icon-amber, [data-tone='alarm'] .icon-alarm, [data-tone='lost'] .icon-lost {
  display: block
}
.gate .stage[data-tone='ready'] .message { color: var(--soft); font-weight: 400 }
@media (prefers-reduced-motion: no-preference) {
  /* Less than one change per second, which is safe for people with photosensitive epilepsy. */
  .gate .stage[data-tone='alarm'] .icon { animation: beat 1.6s ease-in-out infinite }
  @keyframes beat { 50% { transform: scale(1.12) } }
}
.gate aside { padding: .7rem 1.1rem 1rem; background: var(--raised); border-top: 1px solid var(--line); font-size: .8rem; min-height: 9rem; display: flex; flex-direction: column }
/* Each open alarm can be reached: the list scrolls, and the button below it leads on. */
.gate aside ol { flex: 0 1 auto; min-height: 3rem; max-height: 60dvh; overflow-y: auto; overscroll-behavior: contain } .gate aside .more-open { min-height: 48px; margin-top: .3rem; font-size: .85rem }
@media (min-width: 601px) { .gate aside { flex: none; max-height: 60dvh } .gate aside > :not(ol) { flex: none } }
.aside-head { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; justify-content: space-between } .aside-head .language { min-height: 44px }
.gate aside h2 { font-size: .8rem; font-weight: 600; color: var(--soft) }
.gate aside li { display: flex; flex-wrap: wrap; gap: 0 .8rem; align-items: baseline; padding: .1rem 0 }
.gate aside time { font-variant-numeric: tabular-nums; color: var(--soft) }
.gate aside li::before { width: 1.2em; font-weight: 800; content: '!' / ''; color: var(--warn) }
.gate aside li[data-tone='green']::before { content: '✓' / ''; color: var(--good) }
.gate aside li[data-tone='alarm']::before { content: '✕' / ''; color: var(--bad) }
/* An alarm whose cause is recorded needs no one any more. */
.gate aside li[data-step]:not([data-step='acknowledged']), .gate aside li[data-step]:not([data-step='acknowledged'])::before { color: var(--soft) }
.gate aside li[data-step]:not([data-step='acknowledged'])::before { content: '✓' / '' } .gate aside li[data-step]:not([data-step='acknowledged']) :is(code, .handled) { font-weight: 400 }
.gate aside li[data-step]:not([data-step='acknowledged']) button { font-weight: 400; color: var(--soft) }
.gate aside :is(code, [data-needed] > span) { font: inherit; font-weight: 600 } .gate aside [data-needed]:not([data-step]) > span:not(.handled) { color: var(--warn) }
@media (max-width: 600px) { .gate .operator { margin-left: 0 } .screen button { padding: .1rem .7rem } }
.gate aside li:has(button) { align-items: center; padding: .2rem 0 } .gate aside li button { margin-left: auto; min-height: 48px; padding: .1rem .9rem }
.gate .operator { margin-left: auto } .gate .operator button { min-height: 48px }
.handled { font-weight: 700 }
.steps-of-alarm { display: grid; gap: .5rem } .steps-of-alarm button { min-height: 64px } .alarm-theft { display: grid; gap: .3rem } .alarm-theft label { display: grid; gap: .2rem; font-size: .8rem } .alarm-theft input { min-height: 64px }
.alarm-item { overflow-wrap: anywhere; margin-bottom: .4rem }
.alarm-known { margin-bottom: .6rem }
@media (min-width: 601px) and (orientation: landscape) {
  .gate { display: grid; grid-template: auto minmax(0, 1fr) / 1fr minmax(15rem, 22vw) } .gate > header, .gate > noscript { grid-column: 1 / -1 }
  .gate aside { overflow: hidden; max-height: none; padding: .4rem .7rem; border-top: none; border-left: 1px solid var(--line); line-height: 1.15 }
  .aside-head { gap: .3rem .4rem } .aside-head h2 { flex: 1 0 100% } .gate .operator { flex: 1 0 100%; flex-wrap: nowrap; gap: .4rem; margin: 0; justify-content: space-between } .gate .operator button:only-child, .gate .operator p[hidden] ~ button { flex: 1 }
  .gate .screen { flex: 1 1 0; flex-wrap: nowrap; gap: .4rem } .gate .screen button { flex: 1 } .gate .language { padding: 0 .2rem }
  /* The button stands beside the texts of its line, so it touches no other line. */
  .gate aside li:not([hidden]) { display: grid; grid-template-columns: auto 1fr auto; gap: 0 .4rem; align-items: center; padding: .15rem 0 } .gate aside li + li { border-top: 1px solid var(--line) }
  .gate aside li button { grid-column: 3; grid-row: 1 / span 3; align-self: center } .handled:empty { display: none }
  .gate aside code, .gate aside li > span { grid-column: 1 / 3; overflow-wrap: anywhere }
  .gate aside code { display: -webkit-box; overflow: hidden; -webkit-box-orient: vertical; -webkit-line-clamp: 3 } .gate aside code:empty { display: none }
  .gate aside ol { margin-top: .3rem; max-height: none }
  /* The stage has the reason. */
  .gate aside li:has(code:not(:empty)):not([data-needed]) > span:not(.handled) { display: none }
  .gate aside :is(li button, .more-open), .gate .screen button, .gate .operator button { min-height: 44px; padding: 0 .6rem; font-size: .85rem; white-space: nowrap }
}
@media (max-height: 860px) and (min-width: 601px) { .steps-of-alarm { grid-template-columns: 1fr 1fr } dialog:has(.steps-of-alarm) { width: 44rem } .alarm-theft { grid-column: 1 / -1; grid-template-columns: 1fr 1fr; gap: .5rem; align-items: end } }
@media (max-height: 620px) {
  .gate .icon { width: calc(var(--fit, 1) * 4.5rem) }
  .gate .stage { padding: .4rem }
  .gate aside { padding-bottom: .2rem } .gate aside p { font-size: .7rem; line-height: 1.1 }
  .gate aside li { font-size: .7rem; line-height: 1.1 } .gate aside li:not([hidden]) { padding: .08rem 0 } .gate aside li button, .gate .screen button, .gate .operator button { font-size: .72rem; padding: 0 .4rem } .gate .aside-head { gap: .2rem }
  .gate aside h2 { font-size: .7rem }
}
/* A full list shows the latest, whenever it began. */
@media (max-height: 820px) and (min-width: 601px) { .gate aside:has(li:nth-child(4)) p:not([data-slot='operator-name']) { display: none } }
`

/**
 * Colours, fonts and common elements. The pages are dark by default, and light if the browser prefers light. Signal
 * colours are the same in both schemes.
 */
const BASE = `
:root {
  color-scheme: dark light;
  --ink: #f1f4f7; --paper: #101418; --raised: #1b2127; --soft: #b3bdc8; --line: #4a5561; --accent: #8fc1ff; --on-accent: #06213f;
  --good: #6ee0a4; --warn: #ffc65c; --bad: #ff9d94;
  --green: #0b6b3a; --red: #a3161b; --amber: #ffbe3d; --blue: #1d4f91; --on-strong: #ffffff; --on-amber: #1c1300;
  /* Smallest text of a stage: 46 px on a screen of 1024 × 600, which is 7 mm on 7 inches: readable at 2 m. */
  --least: min(46px, 4.5vw, 7.7vh);
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
  width: calc(var(--fit, 1) * clamp(3rem, 16vh, 11rem)); height: auto; fill: none; stroke: currentColor; stroke-width: 8; stroke-linecap: round;
  stroke-linejoin: round
}
.picture { display: inline-flex; width: calc(var(--fit, 1) * clamp(5rem, 16vh, 11rem)); aspect-ratio: 1; padding: .35rem; border-radius: 16px; background: #ffffff }
.picture img { width: 100%; height: 100%; object-fit: contain }
.picture svg { width: 100%; fill: none; stroke: #5b6670; stroke-width: 4; stroke-linejoin: round; stroke-linecap: round }
.picture .gone { display: none }
.icons .icon { display: none; border: calc(var(--fit, 1) * .45rem) solid currentColor; border-radius: 50%; padding: calc(var(--fit, 1) * .7rem) }
.headline, .idle h2 {
  font-size: max(var(--least), var(--fit, 1) * var(--fit, 1) * clamp(1.9rem, min(7.5vw, 12vh), 6rem)); line-height: 1.05; font-weight: 800; overflow-wrap: anywhere;
  hyphens: auto
}
.message, .advice, .product, .item {
  font-size: max(var(--least), var(--fit, 1) * clamp(1.15rem, min(5.2vw, 8.8vh), 3.6rem)); line-height: 1.2; font-weight: 600; text-wrap: balance
}
.advice { font-weight: 400 } .product, .item { font-weight: 800; overflow-wrap: anywhere }
/* The last resort: long names and lists of goods. */
[data-cut] :is(.product, .item, [data-slot='next']) {
  display: -webkit-box; overflow: hidden; -webkit-box-orient: vertical; -webkit-line-clamp: 2
}
[data-cut] .picture { display: none }
@media (min-width: 601px) and (orientation: portrait) {
  .headline, .idle h2 { font-size: max(var(--least), var(--fit, 1) * 12vw) }
  .message, .advice, .product, .item { font-size: max(var(--least), var(--fit, 1) * 6vw) }
  .icon { width: calc(var(--fit, 1) * 26vw) } .picture { width: calc(var(--fit, 1) * 30vw) }
}
`

/** The style sheet of all pages. The content security policy contains the hash of the style sheet (edge-agent/http). */
export const STYLE = BASE + STATION + GATE
