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
  --shadow-high: 0 10px 34px rgb(16 42 49 / .24);`

const DARK = `
  --ink: #e6edf0; --ink-soft: #a3b4bd; --paper: #0e1518; --surface: #162024; --raised: #1f2c31; --line: #2c3b41; --field-line: #738891;
  --accent: #6fcdd2; --accent-hover: #93dde1; --on-accent: #05282b; --accent-soft: #16393d; --side: #0a1114; --side-ink: #cbd9dd; --side-soft: #8ea4ab; --side-on: #1b3036;
  --ok: #7ad9aa; --ok-soft: #123226; --warn: #f5c170; --warn-soft: #38290f; --info: #9dc2f7; --info-soft: #17294a;
  --alarm: #ff8e98; --alarm-soft: #421218; --on-alarm: #3a0008;
  --test: #ffc83d; --on-test: #241a00; --shadow: 0 1px 2px rgb(0 0 0 / .4); --shadow-high: 0 10px 34px rgb(0 0 0 / .6);`

/** Type scale (1.2): small, text, large, heading 2, heading 1, figure. */
const TOKENS = `
:root { color-scheme: light dark; ${LIGHT}
  --small: .8125rem; --text: .9375rem; --large: 1.0625rem; --h2: 1.1875rem; --h1: 1.625rem; --figure: 1.75rem;
  --font: system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace;
  --gap-1: .25rem; --gap-2: .5rem; --gap-3: .75rem; --gap-4: 1rem; --gap-5: 1.5rem; --gap-6: 2rem;
  --radius: .625rem; --radius-small: .375rem; --touch: 2.75rem; --bar: 3.75rem; --side-width: 15.5rem; }
@media (prefers-color-scheme: dark) { :root { ${DARK} } }
`

/** Frame of a page: ribbon, side bar or bottom bar, header, content. */
const LAYOUT = `
.skip { position: absolute; left: -99rem; top: 0; z-index: 60; padding: .7rem 1rem; background: var(--surface); color: var(--ink) } .skip:focus { left: 0 }
.ribbon { position: sticky; top: 0; z-index: 40; display: flex; justify-content: center; padding: .3rem var(--gap-4); color: var(--on-test); background:
  repeating-linear-gradient(-45deg, var(--test) 0 16px, #f3b51c 16px 32px); font-size: var(--small); font-weight: 650; text-align: center }
.ribbon p { padding: 0 .6rem; border-radius: 99px; background: var(--test) }
.connection:not([hidden]) { position: sticky; top: 0; z-index: 45; display: flex; gap: .7rem; align-items: start; padding: var(--gap-3) var(--gap-4); background: var(--warn-soft); color: var(--warn); border-bottom: 2px solid currentColor } .connection p { color: var(--ink) } .connection strong { color: var(--warn) }
.is-test .connection { top: 2rem } .is-lost :is(#page, .side, .top, .bottom) { filter: grayscale(1) }
.frame { display: grid; grid-template-columns: var(--side-width) minmax(0, 1fr); min-height: 100vh; min-height: 100dvh }
.is-test .frame { min-height: calc(100vh - 2rem); min-height: calc(100dvh - 2rem); border: solid var(--test); border-width: 0 5px 5px }
.side { background: var(--side); color: var(--side-ink) }
.side-inner { position: sticky; top: 0; display: flex; flex-direction: column; gap: var(--gap-4); height: 100dvh; overflow-y: auto; padding: var(--gap-4) var(--gap-3) }
.is-test .side-inner { top: 2rem; height: calc(100dvh - 2rem - 5px) }
.brand { display: flex; align-items: center; gap: .6rem; min-height: var(--touch); padding: 0 var(--gap-2); color: inherit; font-size: 1.25rem; font-weight: 680; letter-spacing: -.02em; text-decoration: none }
.brand:hover { color: inherit } .side .brand { color: #fff }
.nav-group + .nav-group { margin-top: var(--gap-4) }
.nav-group > p { padding: 0 .75rem var(--gap-1); font-size: var(--small); color: var(--side-soft) }
.nav-group > summary { display: list-item; min-height: 2.5rem; padding: .55rem .75rem; border-radius: var(--radius); font-size: var(--small); color: var(--side-soft); cursor: pointer } .nav-group > summary:hover { background: var(--side-on); color: #fff }
.nav-link { display: flex; align-items: center; gap: .7rem; min-height: var(--touch); padding: 0 .75rem; border-radius: var(--radius); color: inherit; text-decoration: none; font-weight: 500 }
.nav-link:hover { color: #fff; text-decoration: underline } .nav-link[aria-current] { background: var(--side-on); color: #fff; font-weight: 620 }
.waits:not([hidden]) { display: inline-grid; place-items: center; min-width: 1.5rem; padding: 0 .4rem; border-radius: 1rem; background: var(--warn-soft); color: var(--warn); font-size: .8125rem; font-weight: 680; line-height: 1.5rem }
.waits.alarm { background: var(--alarm); color: var(--on-alarm) } .nav-link .waits, .menu-item .waits { margin-inline-start: auto }
.side :focus-visible { outline-color: #6fcdd2 }
/* With a mouse, every entry is in view at 1280 × 800. */
@media (pointer: fine) and (max-height: 60rem) { .side-inner { gap: var(--gap-2); padding-block: var(--gap-2) } .nav-group + .nav-group { margin-top: var(--gap-2) } .nav-group + details.nav-group { margin-top: 0 } .nav-link { min-height: 2.5rem } .nav-group > p { padding-bottom: 0 } }
.side-foot { margin-top: auto; padding: 0 .75rem; font-size: var(--small); color: var(--side-soft) }
.main-column { display: flex; flex-direction: column; min-width: 0 }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: var(--gap-2) var(--gap-3); min-height: var(--bar); padding: var(--gap-2) var(--gap-5); background: var(--surface); border-bottom: 1px solid var(--line) }
.top .brand { display: none } .top .space { flex: 1 }
.content { flex: 1; width: 100%; max-width: 84rem; padding: var(--gap-5); } .content:focus { outline: none }
.page-head { display: flex; flex-wrap: wrap; align-items: end; justify-content: space-between; gap: var(--gap-3); margin-bottom: var(--gap-5) }
.page-head p { margin-top: .2rem; color: var(--ink-soft) }
.bottom { display: none }
.menu-button { display: inline-flex; align-items: center; gap: .5rem; min-height: var(--touch); max-width: 100%; padding: 0 .75rem; border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); cursor: pointer; font-weight: 550; text-align: left }
.menu-button:hover { background: var(--raised) } .menu-button span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.avatar { display: grid; place-items: center; flex: none; width: 1.75rem; height: 1.75rem; border-radius: 50%; background: var(--accent-soft); color: var(--accent); font-size: var(--small); font-weight: 680 } .avatar::before { content: attr(data-initials) / '' }
.popover { inset: 0; width: min(24rem, calc(100vw - 2rem)); max-height: min(80dvh, 36rem); margin: auto; padding: var(--gap-2); overflow-y: auto; color: var(--ink); background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow-high) }
.popover::backdrop { background: rgb(6 18 22 / .45) }
.menu-title { padding: var(--gap-2) .75rem; } .menu-title strong { display: block }
.menu-item { display: flex; align-items: center; gap: .7rem; width: 100%; min-height: var(--touch); padding: .4rem .75rem; border: 0; border-radius: var(--radius-small); background: none; color: inherit; text-align: left; text-decoration: none; cursor: pointer }
.menu-item:hover { background: var(--raised); color: inherit } .menu-item[aria-current] { font-weight: 650 } .menu-item .check { margin-left: auto; color: var(--accent) } .menu-item small { display: block; color: var(--ink-soft); font-weight: 400 }
.menu-line { height: 1px; margin: var(--gap-2) 0; background: var(--line) }
.mode { display: inline-flex; padding: 3px; border-radius: var(--radius); background: var(--raised) }
.mode a, .mode > button { display: inline-flex; align-items: center; min-height: calc(var(--touch) - 6px); padding: 0 .8rem; border-radius: calc(var(--radius) - 3px); color: var(--ink-soft); font-size: var(--small); font-weight: 600; text-decoration: none }
.mode > button { border: 0; background: none; font: inherit; font-size: var(--small); font-weight: 600; cursor: pointer } .mode a[aria-current] { background: var(--surface); color: var(--ink); box-shadow: var(--shadow) } .is-test .mode a[aria-current] { background: var(--test); color: var(--on-test) }
@media (min-width: 60rem) { .popover.at-top { inset: 3.6rem 1.5rem auto auto; margin: 0 } .popover.at-top.left { inset: 3.6rem auto auto calc(var(--side-width) + 1.5rem) } .is-test .popover.at-top { top: 5.6rem } .popover.at-top::backdrop { background: none } }
@media (max-width: 59.99rem) {
  .frame { display: block; padding-bottom: calc(4.5rem + env(safe-area-inset-bottom)) } .is-test .frame { border-width: 0 3px } .side { display: none }
  .top { padding: var(--gap-2) var(--gap-4) } .top .brand { display: flex; padding: 0; margin-right: auto } .top .brand b { display: none } .top .space { display: none }
  .content { padding: var(--gap-4) }
  .page-head { margin-bottom: var(--gap-4) }
  .bottom { position: fixed; inset: auto 0 0; z-index: 30; display: flex; padding-bottom: env(safe-area-inset-bottom); background: var(--surface); border-top: 1px solid var(--line) }
  .is-test .bottom { border-top: 4px solid var(--test) }
  .bottom .tab { flex: 1 1 0; display: flex; flex-direction: column; align-items: center; justify-content: center; gap: .1rem; min-width: 0; min-height: 3.75rem; padding: .2rem; border: 0; background: none; color: var(--ink-soft); font-size: .75rem; font-weight: 550; text-decoration: none; cursor: pointer; text-align: center }
  .bottom .tab { position: relative } .bottom .tab .waits { position: absolute; inset-block-start: .2rem; inset-inline-start: calc(50% + .4rem); min-width: 1.25rem; font-size: .75rem; line-height: 1.25rem }
  .bottom .tab span { max-width: 100%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
  .bottom .tab[aria-current] { color: var(--accent); font-weight: 680; box-shadow: inset 0 3px var(--accent) } .bottom .tab:focus-visible { outline-offset: -3px }
}
@media (max-width: 30rem) { .top .menu-button.store { order: 3; flex: 1 0 100% } .top .account span.name { display: none } .top .account { padding: 0 .4rem } }
.alone { display: grid; align-content: start; justify-items: center; min-height: 100dvh; padding: max(4vh, 1rem) var(--gap-4) var(--gap-6) }
.alone > main { width: 100%; max-width: 27rem; } .alone .brand { color: var(--ink); font-size: 1.5rem; margin-bottom: var(--gap-4) } .alone footer { margin-top: var(--gap-4); text-align: center }
`

/** One block for each file in components/. */
const COMPONENTS = `
.button { display: inline-flex; align-items: center; justify-content: center; gap: .5rem; min-height: var(--touch); padding: .35rem 1.05rem; border: 1px solid var(--field-line); border-radius: var(--radius); background: var(--surface); color: var(--ink); font-weight: 600; line-height: 1.25; text-decoration: none; cursor: pointer; transition: background-color .12s }
.button:hover { background: var(--raised); color: var(--ink) } .button:active { transform: translateY(1px) } .button.wide { width: 100% }
.button.main { border-color: var(--accent); background: var(--accent); color: var(--on-accent) } .button.main:hover { background: var(--accent-hover); border-color: var(--accent-hover) }
.button.quiet { border-color: transparent; background: none; color: var(--accent) } .button.quiet:hover { background: var(--accent-soft) } .button[aria-current] { border-color: var(--accent); background: var(--accent-soft); color: var(--accent) } nav.row { margin-bottom: var(--gap-3) }
.button[aria-disabled='true'], .button:disabled { opacity: .55; cursor: default } .htmx-request .button[type='submit'], .htmx-request > .button { opacity: .6 }

.card { padding: var(--gap-4); border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); box-shadow: var(--shadow) } .card.flush { padding: 0; overflow: hidden }
.card > header { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: var(--gap-2); margin-bottom: var(--gap-3) } .card.flush > header { margin: 0; padding: var(--gap-2) var(--gap-4); min-height: 3.5rem; border-bottom: 1px solid var(--line) }
.card.alarm { border-color: var(--alarm); border-left-width: 6px }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: var(--gap-4) }
.grid:has(> .field) { align-items: end }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 10.5rem), 1fr)); gap: var(--gap-3) } .figures > li { display: grid } .money-figures .figures { grid-template-columns: repeat(auto-fit, minmax(min(100%, 13rem), 1fr)) }
.figure { display: flex; flex-direction: column; gap: .1rem; padding: var(--gap-3) var(--gap-4); border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); color: var(--ink); text-decoration: none; box-shadow: var(--shadow) }
a.figure:hover { border-color: var(--accent); color: var(--ink) } .figure dt, .figure .label { color: var(--ink-soft); font-size: var(--small); font-weight: 550 } .figure .value { font-size: var(--figure); line-height: 1.15; font-weight: 640; letter-spacing: -.02em; font-variant-numeric: tabular-nums; overflow-wrap: normal }
.figure .note { font-size: var(--small); color: var(--ink-soft) } .figure.alarm { border-color: var(--alarm); background: var(--alarm-soft) } .figure.alarm .value { color: var(--alarm) }

.badge { display: inline-flex; align-items: center; gap: .35rem; padding: .1rem .6rem; border-radius: 99px; background: var(--raised); color: var(--ink); font-size: var(--small); font-weight: 600; white-space: nowrap }
.badge.ok { background: var(--ok-soft); color: var(--ok) } .badge.warn { background: var(--warn-soft); color: var(--warn) } .badge.info { background: var(--info-soft); color: var(--info) } .badge.alarm { background: var(--alarm); color: var(--on-alarm) }

.table-wrap { position: relative; overflow-x: auto } table { width: 100%; border-collapse: collapse }
th, td { padding: .6rem var(--gap-4); text-align: left; vertical-align: middle; border-bottom: 1px solid var(--line) } tbody tr:last-child > * { border-bottom: 0 }
thead th { font-size: var(--small); font-weight: 600; color: var(--ink-soft); background: var(--surface); white-space: nowrap } tbody th { font-weight: 600 } .end { text-align: right } td.end { font-variant-numeric: tabular-nums; white-space: nowrap }
tbody tr:hover { background: color-mix(in srgb, var(--raised) 45%, transparent) } td .row { gap: var(--gap-2) } td.actions { text-align: right } td.actions .row { justify-content: flex-end; flex-wrap: nowrap }
.sub { display: block; font-size: var(--small); font-weight: 400; color: var(--ink-soft) }
/* On paper a table stays a table. */
@media screen and (max-width: 47.99rem) {
  .table-wrap { overflow: visible } .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
  .cards, .cards tbody, .cards tr, .cards th, .cards td, .cards caption.shown { display: block } .cards tbody tr { padding: var(--gap-3) var(--gap-4); border-bottom: 1px solid var(--line) } .cards tbody tr:last-child { border: 0 }
  .cards td, .cards tbody th { display: flex; justify-content: space-between; align-items: baseline; gap: var(--gap-4); padding: .2rem 0; border: 0; text-align: right } .cards tbody th { font-size: var(--large); text-align: left; display: block }
  .cards td::before { content: attr(data-label); flex: none; color: var(--ink-soft); font-size: var(--small); text-align: left } .cards td.actions { display: block } .cards td.actions::before { content: none } .cards td.actions .row { margin-top: var(--gap-2); justify-content: stretch } .cards td.actions .row > *, .cards td.actions .button { flex: 1 }
  .cards td.prose { display: block; text-align: left } .cards td.prose::before { display: block }
  .cards td:empty { display: none }
}

.field { display: grid; gap: .3rem; min-width: 0; max-width: 36rem } .field > label:not(.choice), .field > legend { font-weight: 600; padding: 0; margin-bottom: .3rem } .field .hint { font-size: var(--small); color: var(--ink-soft) }
.input { width: 100%; min-height: var(--touch); padding: .5rem .75rem; border: 1px solid var(--field-line); border-radius: var(--radius-small); background: var(--surface) } textarea.input { min-height: 6rem; resize: vertical; display: block } select.input { padding-right: 2rem }
.input:focus-visible { outline-offset: 0 } .input[aria-invalid='true'] { border: 2px solid var(--warn) }
.field-error { display: flex; gap: .4rem; color: var(--warn); font-size: var(--small); font-weight: 600 } .field-error svg { margin-top: .1rem }
.choices { display: grid; gap: var(--gap-2) } .choice { display: flex; align-items: center; gap: .7rem; min-height: var(--touch); padding: .3rem .75rem; border: 1px solid var(--field-line); border-radius: var(--radius-small); background: var(--surface); cursor: pointer } .choice:has(:checked) { border-color: var(--accent); background: var(--accent-soft) } .choice:has(:focus-visible) { outline: 3px solid var(--accent); outline-offset: 2px } .choice input { width: 1.25rem; height: 1.25rem; margin: 0; accent-color: var(--accent) } .choice input:focus-visible { outline: none } .choice small { display: block; color: var(--ink-soft) }
.bar { display: block; width: 100%; max-width: 24rem; height: .45rem; margin-top: .3rem; border-radius: 3px; background: var(--raised) } .bar rect, .chart rect { fill: var(--accent) } .chart svg { display: block; width: 100%; max-width: 34rem } .chart path { stroke: var(--line); stroke-width: .6 } .chart text { fill: var(--ink-soft); font-size: 7px; text-anchor: middle }
legend.group { padding: 0; margin-bottom: var(--gap-3); font-size: var(--large); font-weight: 650 } fieldset.filters { margin-bottom: 0 }
.form-foot { display: flex; flex-wrap: wrap; gap: var(--gap-3); padding-top: var(--gap-2) }
.filters { display: flex; flex-wrap: wrap; gap: var(--gap-3); align-items: start; margin-bottom: var(--gap-4) } .filters .field { flex: 1 1 11rem; max-width: 18rem } .filters .field:has(.hint) { max-width: 26rem }
/* The labels are at one height, and so are the inputs: what explains a field is below it. The button is at the height of the inputs. */
.filters .hint { order: 1 } .filters .field-error { order: 2 } .filters > .button { margin-top: calc(1lh + .85rem) } @media (max-width: 30rem) { .filters .field { flex-basis: 100%; max-width: none } .filters .button { flex: 1 } }

.notice { display: flex; gap: .7rem; padding: var(--gap-3) var(--gap-4); border-radius: var(--radius); background: var(--info-soft); color: var(--info) } .notice > div { min-width: 0 } .notice p { color: var(--ink) } .notice.warn { background: var(--warn-soft); color: var(--warn) } .notice.ok { background: var(--ok-soft); color: var(--ok) } .notice.alarm { background: var(--alarm); color: var(--on-alarm) } .notice.alarm p { color: inherit } .notice svg { margin-top: .1rem }
.toasts { position: fixed; z-index: 50; inset: auto var(--gap-4) calc(5.2rem + env(safe-area-inset-bottom)); display: grid; justify-items: center; pointer-events: none } .toast { display: flex; align-items: center; gap: .7rem; max-width: 32rem; padding: .8rem 1.1rem; border-radius: var(--radius); background: var(--side); color: #fff; font-weight: 550; box-shadow: var(--shadow-high); animation: toast 6s forwards } @keyframes toast { 0% { opacity: 0; transform: translateY(.6rem) } 4%, 90% { opacity: 1; transform: none } 100% { opacity: 0; visibility: hidden } }
@media (min-width: 60rem) { .toasts { inset: auto var(--gap-5) var(--gap-5) auto; justify-items: end } }
@media (prefers-reduced-motion: reduce) { .toast { animation: none } }

.empty { display: grid; justify-items: center; gap: var(--gap-2); padding: var(--gap-6) var(--gap-4); text-align: center } .empty svg { color: var(--accent); opacity: .85 } .empty p { max-width: 30rem; color: var(--ink-soft) }
caption.shown { padding: var(--gap-2) 0; text-align: start; font-weight: 620 }
.timeline { display: grid } .timeline > li { position: relative; display: grid; grid-template-columns: 1.25rem minmax(0, 1fr); gap: 0 .8rem; padding-bottom: var(--gap-4) } .timeline > li::before { content: ''; grid-row: 1 / span 3; width: .75rem; height: .75rem; margin: .35rem .25rem 0; border-radius: 50%; background: var(--field-line) } .timeline > li:not(:last-child)::after { content: ''; position: absolute; left: .58rem; top: 1.4rem; bottom: -.1rem; width: 2px; background: var(--line) } .timeline > li.ok::before { background: var(--ok) } .timeline > li.warn::before { background: var(--warn) } .timeline > li.info::before { background: var(--info) } .timeline > li.alarm::before { background: var(--alarm) } .timeline time { font-size: var(--small); color: var(--ink-soft) }
.pages { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: var(--gap-3); padding: var(--gap-3) 0 } .list > li { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: var(--gap-2) var(--gap-4); min-height: 3.5rem; padding: var(--gap-3) var(--gap-4); border-bottom: 1px solid var(--line) } tbody th > a, .alarm-card h3 > a, .timeline strong > a { display: inline-flex; align-items: center; min-height: var(--touch) } .list > li:last-child { border: 0 } .card:not(.flush) .list > li { padding-inline: 0 } .list > li > :first-child { flex: 1 1 14rem; min-width: 0 }
.task { display: flex; gap: var(--gap-3); align-items: flex-start } .task-icon { display: grid; place-items: center; flex: none; width: 2.75rem; height: 2.75rem; border-radius: var(--radius); background: var(--accent-soft); color: var(--accent) } .task-icon.alarm { background: var(--alarm); color: var(--on-alarm) }
.alarm-figures .figures { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: var(--gap-2) } .alarm-figures .figure { height: 100%; justify-content: space-between; padding: var(--gap-2) var(--gap-3) }
@media (max-width: 47.99rem) { .alarm-page.stack, .alarm-page > .stack.wide, .alarm-page .alarm-card { gap: var(--gap-2) } .alarm-page { margin-top: calc(var(--gap-2) * -1) } .alarm-page .alarm-goods > div { grid-row: 1 / span 2 } .alarm-page .alarm-goods > .badge.alarm { grid-area: 2 / 1 } .alarm-figures .figure { padding: var(--gap-1, .3rem) var(--gap-2) } .alarm-figures .figure .value { font-size: var(--large) } .alarm-figures .figure dt, .alarm-figures .figure .label { font-size: .75rem; line-height: 1.2 } }
.alarm-card { display: grid; grid-template-columns: minmax(0, 1fr); gap: var(--gap-3) } .alarm-goods { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: var(--gap-1) var(--gap-3); align-items: start } .alarm-goods h3 { font-size: var(--large) } .alarm-goods > .badge { grid-column: 2; justify-self: start } @media (min-width: 48rem) { .alarm-goods { grid-template-columns: auto minmax(0, 1fr) auto } .alarm-goods > .badge { grid-column: 3 } }
.alarm-picture { display: grid; place-items: center; width: 4.5rem; height: 4.5rem; border-radius: var(--radius); background: var(--raised); color: var(--ink-soft); object-fit: cover }
.goods { display: flex !important; gap: var(--gap-3) } .goods .alarm-picture { flex: none; width: 2.75rem; height: 2.75rem }
.calendar { overflow-x: auto !important } .calendar table { min-width: 56rem; table-layout: fixed } .calendar :is(th, td) { min-width: 0; padding: .3rem 1px } .calendar th[scope=row], .calendar th:first-child { width: 12rem; padding-inline: var(--gap-4) } .calendar thead th:not(:first-child) { text-align: center } .calendar th[aria-current] { color: var(--accent); box-shadow: inset 0 -3px var(--accent) }
.calendar .bar { display: block; overflow: hidden; padding: .25rem .4rem; border-radius: var(--radius-small); background: var(--raised); font-size: var(--small); font-weight: 600; white-space: nowrap } .bar.ok { background: var(--ok-soft); color: var(--ok) } .bar.info { background: var(--info-soft); color: var(--info) } .months { margin: 0 }
.page-actions { margin-bottom: var(--gap-4) } :is(.list > li > div > a:first-child, td > a) { display: inline-flex; align-items: center; min-height: var(--touch) }
.receipt-fit { display: flex; gap: var(--gap-2); align-items: center; padding: var(--gap-2) var(--gap-3); border-radius: var(--radius-small); background: var(--raised); font-weight: 600 } .receipt-fit.ok { background: var(--ok-soft); color: var(--ok) } .receipt-fit.warn { background: var(--warn-soft); color: var(--warn) }
.card > :is(p, .notice) + :is(form, div) { margin-top: var(--gap-3) }
#page > .card + .card { margin-top: var(--gap-4) } td .popover { text-align: left } form[data-rejected] { min-width: min(20rem, 75vw); text-align: left } .row:has(> form[data-rejected]) > button { display: none } td .button, td time { white-space: nowrap }
.button, .badge, .tab, th, td, h1, h2, h3, label { overflow-wrap: break-word; hyphens: auto } @media (min-width: 48rem) { th, td { min-width: 6rem } }
@media (min-width: 48rem) { .card form.stack > .button:not(.wide), .card > .stack > form.stack > .button:not(.wide) { justify-self: start } } .board form.stack > .button, .board article > .button { width: 100%; justify-self: stretch }
.alarm-settings { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: var(--gap-3); max-width: 44rem } .alarm-setting:not([hidden]) { display: grid; gap: var(--gap-1, .3rem); align-content: start; justify-items: start }
.alarm-theft { display: grid; gap: var(--gap-2); padding: var(--gap-3); border: 1px solid var(--line); border-radius: var(--radius) }
.alarm-actions { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: var(--gap-2); align-items: start; max-width: 32rem } .alarm-actions > .button, .alarm-actions form .button { width: 100% } .alarm-actions > form:has(> .main) { grid-column: 1 / -1 } .alarm-causes { display: grid; gap: var(--gap-2) } .compared summary { min-height: var(--touch); display: flex; align-items: center; cursor: pointer }
.pairs { display: grid; grid-template-columns: minmax(7rem, max-content) minmax(0, 1fr); gap: .35rem var(--gap-4) } .pairs dt { color: var(--ink-soft) }

.chat { display: grid; gap: var(--gap-3) } .chat > li { max-width: min(34rem, 88%); padding: var(--gap-2) var(--gap-3); border-radius: var(--radius); background: var(--raised) } .chat > li.staff { justify-self: end; background: var(--accent-soft) } .chat p { white-space: pre-wrap } .chat-card { margin-bottom: var(--gap-5) }
.row.bottom-aligned { align-items: end } .count .field { width: 7rem } .kept-in-view { position: sticky; bottom: 0; padding: var(--gap-3) var(--gap-4); border-top: 1px solid var(--line); background: var(--surface) } .card:has(.kept-in-view) { overflow: clip } @media (max-width: 59.99rem) { .kept-in-view { bottom: calc(3.75rem + env(safe-area-inset-bottom)) } }
.codes { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: var(--gap-2); margin-block: var(--gap-3); font-size: var(--large) }
.board { display: grid; gap: var(--gap-4); align-items: start }
@media (min-width: 40rem) { .board { grid-template-columns: repeat(2, minmax(0, 1fr)) } }
@media (min-width: 72rem) { .board { grid-template-columns: repeat(4, minmax(0, 1fr)) } }
.button.needs-script { display: none } @media (scripting: enabled) { .button.needs-script { display: inline-flex } }
.print-badge { display: flex; flex-wrap: wrap; gap: var(--gap-4); align-items: center; width: 100%; max-width: 30rem } .print-badge > div { flex: 1 1 12rem; min-width: 0 } .qr { width: 11rem; height: 11rem } .big-code { font: 650 1.75rem/1.3 var(--mono); margin-bottom: var(--gap-3) }
.command { display: grid; gap: var(--gap-2); justify-items: start; margin-bottom: var(--gap-3) } .command pre { width: 100%; margin: 0; padding: var(--gap-3); border: 1px solid var(--line); border-radius: var(--radius); background: var(--raised); font: .9rem/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; user-select: all } .command-code { font-size: 1.2rem; font-weight: 650; overflow-wrap: anywhere; margin-bottom: var(--gap-2) }
.row:empty { display: none }
.json { max-height: 32rem; margin: 0; padding: var(--gap-3); overflow: auto; border: 1px solid var(--line); border-radius: var(--radius); background: var(--raised); font: .85rem/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere } .secret { overflow-wrap: anywhere }
details > summary { min-height: var(--touch); padding: .6rem 0; color: var(--ink-soft); cursor: pointer }
.confirm h2 { padding: var(--gap-2) var(--gap-2) 0 } .confirm p { padding: var(--gap-2); color: var(--ink-soft) } .confirm form { display: grid; gap: var(--gap-4); padding: var(--gap-2) } .confirm > .button.wide { width: calc(100% - 2 * var(--gap-2)); margin: 0 var(--gap-2) var(--gap-2) }
`

/** Elements without a class. */
const BASE = `
*, *::before, *::after { box-sizing: border-box }
[hidden] { display: none !important }
html { scroll-padding: 6rem 0 7rem; -webkit-text-size-adjust: 100%; text-size-adjust: 100% }
/* After an action, htmx inserts the new page before it removes the old one. Scroll anchoring would then jump to the end. */
body { overflow-anchor: none; margin: 0; font: var(--text)/1.5 var(--font); color: var(--ink); background: var(--paper); overflow-wrap: anywhere }
h1, h2, h3, p, ul, ol, dl, dd, figure, fieldset, table { margin: 0; padding: 0 }
ul, ol { list-style: none } fieldset { border: 0; min-width: 0 }
h1 { font-size: var(--h1); line-height: 1.2; letter-spacing: -.015em; font-weight: 650; text-wrap: balance }
h2 { font-size: var(--h2); line-height: 1.3; font-weight: 650 } h3 { font-size: var(--text); font-weight: 650 }
a { color: var(--accent); text-underline-offset: .18em } a:hover { color: var(--accent-hover) }
code { font: .92em var(--mono) } svg { flex: none }
button, input, select, textarea { font: inherit; color: inherit }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: var(--radius-small) }
.soft { color: var(--ink-soft) } .small { font-size: var(--small) } .number { font-variant-numeric: tabular-nums }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.stack { display: grid; gap: var(--gap-4); min-width: 0 } .stack.wide { gap: var(--gap-5) } .stack.tight { gap: var(--gap-2) }
.stack > * { min-width: 0 } .row { display: flex; flex-wrap: wrap; gap: var(--gap-3); align-items: center } .row.between { justify-content: space-between }
.prose { max-width: 44rem }
@media (prefers-reduced-motion: reduce) { *, *::before, *::after { animation: none !important; transition: none !important; scroll-behavior: auto !important } }
@media (prefers-reduced-motion: no-preference) { @view-transition { navigation: auto } ::view-transition-group(*) { animation-duration: .12s } }
@media (forced-colors: active) { .badge, .card, .button { border: 1px solid } }
@media print { .side, .bottom, .top, .ribbon, form, .toasts, .no-print { display: none !important } body { background: #fff } .on-paper { display: block !important } .frame { display: block !important; min-height: 0 !important; border: 0 !important; padding: 0 !important } .content { max-width: none !important; padding: 0 !important } table :is(th, td) { min-width: 0 !important; padding: .3rem .35rem !important; font-size: 8.5pt; white-space: normal !important } }
.on-paper { display: none }
.sign { align-items: center; justify-items: center; text-align: center } .sign img { max-width: 100%; height: auto; border-radius: 12px; image-rendering: pixelated }
@media print { .sign img { width: 12cm } .sign .strong { font-size: 18pt } }
form:has(input[name=type][value=stamps]:checked) .of-kind:not(.of-stamps),
form:has(input[name=type][value=points]:checked) .of-kind:not(.of-points),
form:has(input[name=type][value=cashback]:checked) .of-kind:not(.of-cashback),
form:has(input[name=type][value=tier]:checked) .of-kind:not(.of-tier) { display: none }
`

/** The one stylesheet of the console. */
export const STYLE = [TOKENS, BASE, LAYOUT, COMPONENTS].join('\n')
