/** The station page: prompt, full-width results, input field, operator. */
export const STATION = `
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
.left { font-size: calc(var(--fit, 1) * clamp(1.5rem, min(7vw, 9vh), 4rem)); font-weight: 800; line-height: 1.1 }
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
.typed { flex: 1 1 18rem; min-width: 0 } @media (min-width: 900px) { .station footer { flex-wrap: nowrap } .typed { flex-basis: 8rem } }
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
  /* A result needs the whole screen; its buttons are enough for what may come next. */
  .station:has([data-view='result']) footer { display: none }
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
.list .banner { display: grid; gap: .5rem; border-radius: 14px } .list .banner .next { font-weight: 400 }
.devices { display: grid; gap: .8rem }
.list footer { max-width: 44rem; width: 100%; margin: 0 auto; padding: 0 1.2rem 1rem } .list .language { padding-left: 0 }
.steps { display: grid; gap: .8rem; padding-left: 1.4rem; list-style: decimal }
.devices li { padding: .9rem 1.1rem; border: 2px solid var(--line); border-radius: 16px; background: var(--raised) }
.devices h2 { font-size: 1.2rem }
.devices .row { margin-top: .6rem }
.devices .button { min-height: 72px }
`
