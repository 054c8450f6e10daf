/** The display at the gate: a headline that is readable from a distance, and the last decisions. */
export const GATE = `
.gate .stage { gap: .5rem }
.gate .headline { text-wrap: balance }
.gate .icon { width: clamp(4rem, 19vh, 15rem) }
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
.gate aside { padding: .7rem 1.1rem 1rem; background: var(--raised); border-top: 1px solid var(--line); font-size: .8rem; min-height: 9rem }
.aside-head { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; justify-content: space-between } .aside-head .language { min-height: 44px }
.gate aside h2 { font-size: .8rem; font-weight: 600; color: var(--soft) }
.gate aside li { display: flex; flex-wrap: wrap; gap: 0 .8rem; align-items: baseline; padding: .1rem 0 }
.gate aside time { font-variant-numeric: tabular-nums; color: var(--soft) }
.gate aside li::before { width: 1.2em; font-weight: 800; content: '!' / ''; color: var(--warn) }
.gate aside li[data-tone='green']::before { content: '✓' / ''; color: var(--good) }
.gate aside li[data-tone='alarm']::before { content: '✕' / ''; color: var(--bad) }
.gate aside code { font: inherit; font-weight: 600 }
@media (max-width: 600px) { .gate .operator { margin-left: 0 } .screen button { padding: .1rem .7rem } }
.gate aside li:has(button) { align-items: center; padding: .2rem 0 } .gate aside li button { margin-left: auto; min-height: 48px; padding: .1rem .9rem }
.gate .operator { margin-left: auto } .gate .operator button { min-height: 48px }
.handled { font-weight: 700 }
.steps-of-alarm { display: grid; gap: .5rem } .steps-of-alarm button { min-height: 64px }
.alarm-item { overflow-wrap: anywhere; margin-bottom: .4rem; font-weight: 600 }
@media (min-width: 601px) and (orientation: landscape) {
  .gate { display: grid; grid-template: auto minmax(0, 1fr) / 1fr minmax(15rem, 22vw) } .gate > header, .gate > noscript { grid-column: 1 / -1 }
  .gate aside { overflow-y: auto; padding: .4rem .7rem; border-top: none; border-left: 1px solid var(--line); line-height: 1.15 }
  .aside-head { gap: 0 .5rem } .gate .screen { gap: .4rem }
  .gate aside li { gap: 0 .3rem; padding: 0 } .handled:empty { display: none }
  .gate aside code, .gate aside li > span:not(.handled) { order: 1; flex: 1 0 100% }
  /* The stage has the reason. */
  .gate aside li:has(code:not(:empty)) > span:not(.handled) { display: none }
  .gate aside li button, .gate .screen button, .gate .operator button { min-height: 44px; padding: 0 .7rem }
}
@media (max-height: 720px) and (min-width: 601px) { .steps-of-alarm { grid-template-columns: 1fr 1fr } dialog:has(.steps-of-alarm) { width: 44rem } }
@media (max-height: 620px) {
  .gate .icon { width: 4.5rem }
  .gate .stage { padding: .4rem }
  .gate aside { padding-bottom: .4rem }
}
`
