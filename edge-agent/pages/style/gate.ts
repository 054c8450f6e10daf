/** The display at the gate: a headline that is readable from a distance, and the last decisions. */
export const GATE = `
.gate .stage { gap: .5rem }
.gate .headline { font-size: clamp(2.1rem, min(10.5vw, 13.5vh), 9rem); text-wrap: balance }
.gate .message { font-size: clamp(1.3rem, min(5vw, 5.4vh), 2.8rem) }
.gate .icon { width: clamp(4rem, 19vh, 15rem) }
.gate .stage[data-tone='green'] { background: var(--green); color: var(--on-strong) }
.gate .stage[data-tone='amber'], .gate .stage[data-tone='lost'] { background: var(--amber); color: var(--on-amber) }
.gate .stage[data-tone='alarm'] { background: var(--red); color: var(--on-strong) }
[data-tone='green'] .icon-green, [data-tone='amber'] .icon-amber, [data-tone='alarm'] .icon-alarm, [data-tone='lost'] .icon-lost {
  display: block
}
.gate .stage[data-tone='ready'] .message { color: var(--soft); font-weight: 400 }
.item { font-size: clamp(1.3rem, min(6vw, 6.5vh), 3.4rem); font-weight: 800; overflow-wrap: anywhere }
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
@media (min-width: 601px) { .gate aside ol { max-height: 30vh; overflow-y: auto } }
@media (max-height: 620px) {
  .gate .headline { font-size: clamp(2rem, min(10vw, 12vh), 6rem) }
  .gate .icon { width: 4.5rem }
  .gate .stage { padding: .4rem }
  .gate aside { padding-bottom: .4rem }
}
`
