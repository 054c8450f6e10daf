/** Elements without a class. */
export const BASE = `
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
@media print { .side, .bottom, .top, .ribbon, form, .toasts, .no-print { display: none !important } body { background: #fff } .on-paper { display: block !important } .frame { display: block !important; min-height: 0 !important; border: 0 !important; padding: 0 !important } .content { max-width: none !important; padding: 0 !important } }
.on-paper { display: none }
`
