/** One block for each file in components/. */
export const COMPONENTS = `
.button { display: inline-flex; align-items: center; justify-content: center; gap: .5rem; min-height: var(--touch); padding: .35rem 1.05rem; border: 1px solid var(--field-line); border-radius: var(--radius); background: var(--surface); color: var(--ink); font-weight: 600; line-height: 1.25; text-decoration: none; cursor: pointer; transition: background-color .12s }
.button:hover { background: var(--raised); color: var(--ink) } .button:active { transform: translateY(1px) } .button.wide { width: 100% }
.button.main { border-color: var(--accent); background: var(--accent); color: var(--on-accent) } .button.main:hover { background: var(--accent-hover); border-color: var(--accent-hover) }
.button.quiet { border-color: transparent; background: none; color: var(--accent) } .button.quiet:hover { background: var(--accent-soft) }
.button[aria-disabled='true'], .button:disabled { opacity: .55; cursor: default } .htmx-request .button[type='submit'], .htmx-request > .button { opacity: .6 }

.card { padding: var(--gap-4); border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); box-shadow: var(--shadow) } .card.flush { padding: 0; overflow: hidden }
.card > header { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: var(--gap-2); margin-bottom: var(--gap-3) } .card.flush > header { margin: 0; padding: var(--gap-2) var(--gap-4); min-height: 3.5rem; border-bottom: 1px solid var(--line) }
.card.alarm { border-color: var(--alarm); border-left-width: 6px }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: var(--gap-4) }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 10.5rem), 1fr)); gap: var(--gap-3) } .figures > li { display: grid }
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
@media (max-width: 47.99rem) {
  .table-wrap { overflow: visible } .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
  .cards, .cards tbody, .cards tr, .cards th, .cards td { display: block } .cards tbody tr { padding: var(--gap-3) var(--gap-4); border-bottom: 1px solid var(--line) } .cards tbody tr:last-child { border: 0 }
  .cards td, .cards tbody th { display: flex; justify-content: space-between; align-items: baseline; gap: var(--gap-4); padding: .2rem 0; border: 0; text-align: right } .cards tbody th { font-size: var(--large); text-align: left; display: block }
  .cards td::before { content: attr(data-label); flex: none; color: var(--ink-soft); font-size: var(--small); text-align: left } .cards td.actions { display: block } .cards td.actions::before { content: none } .cards td.actions .row { margin-top: var(--gap-2); justify-content: stretch } .cards td.actions .row > *, .cards td.actions .button { flex: 1 }
  .cards td:empty { display: none }
}

.field { display: grid; gap: .3rem; min-width: 0; max-width: 36rem } .field > label:not(.choice), .field > legend { font-weight: 600; padding: 0; margin-bottom: .3rem } .field .hint { font-size: var(--small); color: var(--ink-soft) }
.input { width: 100%; min-height: var(--touch); padding: .5rem .75rem; border: 1px solid var(--field-line); border-radius: var(--radius-small); background: var(--surface) } textarea.input { min-height: 6rem; resize: vertical; display: block } select.input { padding-right: 2rem }
.input:focus-visible { outline-offset: 0 } .input[aria-invalid='true'] { border: 2px solid var(--warn) }
.field-error { display: flex; gap: .4rem; color: var(--warn); font-size: var(--small); font-weight: 600 } .field-error svg { margin-top: .1rem }
.choices { display: grid; gap: var(--gap-2) } .choice { display: flex; align-items: center; gap: .7rem; min-height: var(--touch); padding: .3rem .75rem; border: 1px solid var(--field-line); border-radius: var(--radius-small); background: var(--surface); cursor: pointer } .choice:has(:checked) { border-color: var(--accent); background: var(--accent-soft) } .choice:has(:focus-visible) { outline: 3px solid var(--accent); outline-offset: 2px } .choice input { width: 1.25rem; height: 1.25rem; margin: 0; accent-color: var(--accent) } .choice input:focus-visible { outline: none } .choice small { display: block; color: var(--ink-soft) }
.form-foot { display: flex; flex-wrap: wrap; gap: var(--gap-3); padding-top: var(--gap-2) }
.filters { display: flex; flex-wrap: wrap; gap: var(--gap-3); align-items: end; margin-bottom: var(--gap-4) } .filters .field { flex: 1 1 11rem; max-width: 18rem } @media (max-width: 30rem) { .filters .field { flex-basis: 100%; max-width: none } .filters .button { flex: 1 } }

.notice { display: flex; gap: .7rem; padding: var(--gap-3) var(--gap-4); border-radius: var(--radius); background: var(--info-soft); color: var(--info) } .notice > div { min-width: 0 } .notice p { color: var(--ink) } .notice.warn { background: var(--warn-soft); color: var(--warn) } .notice.ok { background: var(--ok-soft); color: var(--ok) } .notice.alarm { background: var(--alarm); color: var(--on-alarm) } .notice.alarm p { color: inherit } .notice svg { margin-top: .1rem }
.toasts { position: fixed; z-index: 50; inset: auto var(--gap-4) calc(5.2rem + env(safe-area-inset-bottom)); display: grid; justify-items: center; pointer-events: none } .toast { display: flex; align-items: center; gap: .7rem; max-width: 32rem; padding: .8rem 1.1rem; border-radius: var(--radius); background: var(--side); color: #fff; font-weight: 550; box-shadow: var(--shadow-high); animation: toast 6s forwards } @keyframes toast { 0% { opacity: 0; transform: translateY(.6rem) } 4%, 90% { opacity: 1; transform: none } 100% { opacity: 0; visibility: hidden } }
@media (min-width: 60rem) { .toasts { inset: auto var(--gap-5) var(--gap-5) auto; justify-items: end } }
@media (prefers-reduced-motion: reduce) { .toast { animation: none } }

.empty { display: grid; justify-items: center; gap: var(--gap-2); padding: var(--gap-6) var(--gap-4); text-align: center } .empty svg { color: var(--accent); opacity: .85 } .empty p { max-width: 30rem; color: var(--ink-soft) }
.timeline { display: grid } .timeline > li { position: relative; display: grid; grid-template-columns: 1.25rem minmax(0, 1fr); gap: 0 .8rem; padding-bottom: var(--gap-4) } .timeline > li::before { content: ''; grid-row: 1 / span 3; width: .75rem; height: .75rem; margin: .35rem .25rem 0; border-radius: 50%; background: var(--field-line) } .timeline > li:not(:last-child)::after { content: ''; position: absolute; left: .58rem; top: 1.4rem; bottom: -.1rem; width: 2px; background: var(--line) } .timeline > li.ok::before { background: var(--ok) } .timeline > li.warn::before { background: var(--warn) } .timeline > li.info::before { background: var(--info) } .timeline > li.alarm::before { background: var(--alarm) } .timeline time { font-size: var(--small); color: var(--ink-soft) }
.pages { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: var(--gap-3); padding: var(--gap-3) 0 } .list > li { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: var(--gap-2) var(--gap-4); min-height: 3.5rem; padding: var(--gap-3) var(--gap-4); border-bottom: 1px solid var(--line) } .list > li:last-child { border: 0 } .list > li > :first-child { flex: 1 1 14rem; min-width: 0 }
.task { display: flex; gap: var(--gap-3); align-items: flex-start } .task-icon { display: grid; place-items: center; flex: none; width: 2.75rem; height: 2.75rem; border-radius: var(--radius); background: var(--accent-soft); color: var(--accent) } .task-icon.alarm { background: var(--alarm); color: var(--on-alarm) }
.alarm-figures .figures { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: var(--gap-2) } .alarm-figures .figure { height: 100%; justify-content: space-between; padding: var(--gap-2) var(--gap-3) }
.alarm-card { display: grid; grid-template-columns: minmax(0, 1fr); gap: var(--gap-3) } .alarm-goods { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: var(--gap-1) var(--gap-3); align-items: start } .alarm-goods h3 { font-size: var(--large) } .alarm-goods > .badge { grid-column: 2; justify-self: start } @media (min-width: 48rem) { .alarm-goods { grid-template-columns: auto minmax(0, 1fr) auto } .alarm-goods > .badge { grid-column: 3 } }
.alarm-picture { display: grid; place-items: center; width: 4.5rem; height: 4.5rem; border-radius: var(--radius); background: var(--raised); color: var(--ink-soft); object-fit: cover }
.receipt-fit { display: flex; gap: var(--gap-2); align-items: center; padding: var(--gap-2) var(--gap-3); border-radius: var(--radius-small); background: var(--raised); font-weight: 600 } .receipt-fit.ok { background: var(--ok-soft); color: var(--ok) } .receipt-fit.warn { background: var(--warn-soft); color: var(--warn) }
.card > :is(p, .notice) + :is(form, div) { margin-top: var(--gap-3) }
#page > .card + .card { margin-top: var(--gap-4) } td .popover { text-align: left } td .button, td time { white-space: nowrap }
@media (min-width: 60rem) { .card > form.stack > .button:not(.wide) { justify-self: start } }
.alarm-settings { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: var(--gap-3); max-width: 44rem } .alarm-setting:not([hidden]) { display: grid; gap: var(--gap-1, .3rem); align-content: start; justify-items: start }
.alarm-theft { display: grid; gap: var(--gap-2); padding: var(--gap-3); border: 1px solid var(--line); border-radius: var(--radius) }
.alarm-actions { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: var(--gap-2); align-items: start; max-width: 32rem } .alarm-actions > .button, .alarm-actions form .button { width: 100% } .alarm-actions > form:has(> .main) { grid-column: 1 / -1 } .alarm-causes { display: grid; gap: var(--gap-2) } .compared summary { min-height: var(--touch); display: flex; align-items: center; cursor: pointer }
.pairs { display: grid; grid-template-columns: minmax(7rem, max-content) minmax(0, 1fr); gap: .35rem var(--gap-4) } .pairs dt { color: var(--ink-soft) }

.chat { display: grid; gap: var(--gap-3) } .chat > li { max-width: min(34rem, 88%); padding: var(--gap-2) var(--gap-3); border-radius: var(--radius); background: var(--raised) } .chat > li.staff { justify-self: end; background: var(--accent-soft) } .chat p { white-space: pre-wrap } .chat-card { margin-bottom: var(--gap-5) }
.row.bottom-aligned { align-items: end } .count .field { width: 9rem }
.board { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 14rem), 1fr)); gap: var(--gap-4); align-items: start }
.button.needs-script { display: none } @media (scripting: enabled) { .button.needs-script { display: inline-flex } }
.print-badge { display: flex; flex-wrap: wrap; gap: var(--gap-4); align-items: center; width: 100%; max-width: 30rem } .print-badge > div { flex: 1 1 12rem; min-width: 0 } .qr { width: 11rem; height: 11rem } .big-code { font: 650 1.75rem/1.3 var(--mono); margin-bottom: var(--gap-3) }
.command { display: grid; gap: var(--gap-2); justify-items: start; margin-bottom: var(--gap-3) } .command pre { width: 100%; margin: 0; padding: var(--gap-3); border: 1px solid var(--line); border-radius: var(--radius); background: var(--raised); font: .9rem/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; user-select: all } .command-code { font-size: 1.2rem; font-weight: 650; overflow-wrap: anywhere; margin-bottom: var(--gap-2) }
.row:empty { display: none }
details > summary { min-height: var(--touch); padding: .6rem 0; color: var(--ink-soft); cursor: pointer }
.confirm h2 { padding: var(--gap-2) var(--gap-2) 0 } .confirm p { padding: var(--gap-2); color: var(--ink-soft) } .confirm form { display: grid; gap: var(--gap-4); padding: var(--gap-2) } .confirm > .button.wide { width: calc(100% - 2 * var(--gap-2)); margin: 0 var(--gap-2) var(--gap-2) }
.chart { width: 100%; height: auto; display: block } .chart text { fill: var(--ink-soft); font: 11px var(--font); font-variant-numeric: tabular-nums } .chart .grid-line { stroke: var(--line) } .chart .bar { fill: var(--chart-1) } .chart .line { fill: none; stroke: var(--chart-1); stroke-width: 2; stroke-linejoin: round } .chart .area { fill: var(--chart-1); opacity: .12 } .spark { width: 6rem; height: 1.75rem } figure figcaption { margin-bottom: var(--gap-2); font-weight: 600 }
`
